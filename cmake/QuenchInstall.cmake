# What `make install` puts where: library, headers, command, pkg-config file, CMake package, and the
# pages that the command writes about itself.

include(CMakePackageConfigHelpers)

install(TARGETS quench EXPORT quenchTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/quench.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/quench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

# The prefix is chosen at install time, so the file finds it from where it lies itself.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE up_to_prefix)
configure_file(cmake/quench.pc.in quench.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/quench.pc"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/quench)
configure_package_config_file(cmake/quenchConfig.cmake.in quenchConfig.cmake
    INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(quenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/quenchConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/quenchConfigVersion.cmake"
        DESTINATION ${package_folder})
install(EXPORT quenchTargets NAMESPACE quench:: DESTINATION ${package_folder})

# install_page(FOLDER FILE ARGUMENTS...): keeps what `quench ARGUMENTS` prints as FOLDER/FILE. A command
# built for another machine cannot be asked; any other that does not answer is a broken one.
function(install_page folder file)
    set(severity FATAL_ERROR)
    if(CMAKE_CROSSCOMPILING)
        set(severity WARNING)
    endif()
    install(CODE "
        set(page \"${CMAKE_CURRENT_BINARY_DIR}/pages/${file}\")
        file(MAKE_DIRECTORY \"${CMAKE_CURRENT_BINARY_DIR}/pages\")
        execute_process(COMMAND \"${CMAKE_BINARY_DIR}/quench\" ${ARGN}
                        OUTPUT_FILE \"\${page}\" ERROR_VARIABLE error RESULT_VARIABLE rc)
        if(rc EQUAL 0)
            file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" TYPE FILE
                 FILES \"\${page}\")
        else()
            message(${severity} \"${folder}/${file} is missing: 'quench ${ARGN}' gave \${rc}: \${error}\")
        endif()")
endfunction()

file(GLOB pages CONFIGURE_DEPENDS docs/*.md)
install(FILES README.md LICENSE ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(TARGET quench_tool)
    install(TARGETS quench_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(TARGETS quench_command LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/quench)
    install(DIRECTORY python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/quench/python
            FILES_MATCHING PATTERN "*.py")
    # The name of the tool that many users' scripts call: a link.
    file(CREATE_LINK quench "${CMAKE_CURRENT_BINARY_DIR}/Knight" SYMBOLIC)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/Knight" DESTINATION ${CMAKE_INSTALL_BINDIR})
    install_page(${CMAKE_INSTALL_MANDIR}/man1 quench.1 help --man)
    install_page(${CMAKE_INSTALL_DATADIR}/bash-completion/completions quench help --completion bash)
    install_page(${CMAKE_INSTALL_DATADIR}/zsh/site-functions _quench help --completion zsh)
    install_page(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d quench.fish
                 help --completion fish)
    install_page(${CMAKE_INSTALL_DOCDIR} operators.md ops --markdown)
    install_page(${CMAKE_INSTALL_DOCDIR} passes.md help passes --markdown)
endif()

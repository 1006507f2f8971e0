
;
x0Placeholder*
dtype0*
shape:
R
DepthToSpaceDepthToSpacex0*
data_formatNHWC*

block_size*
T0
+
IdentityIdentityDepthToSpace*
T0
#include "cli.h"

int main(int argc, char **argv)
{
    return quench_command(argc, argv, NULL);
}

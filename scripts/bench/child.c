/* A gh that does nothing, and prints 4 KiB for `... list`: what is left is the price of the way to it. */
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char answer[4096];
    if (argc > 2 && strcmp(argv[2], "list") == 0) {
        memset(answer, 'x', sizeof answer);
        answer[sizeof answer - 1] = '\n';
        return write(1, answer, sizeof answer) != sizeof answer;
    }
    return 0;
}

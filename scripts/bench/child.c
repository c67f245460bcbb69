/* A gh that does nothing: what is left is the price of the way to it. */
int main(void) { return 0; }

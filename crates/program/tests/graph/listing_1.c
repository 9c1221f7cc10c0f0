int main(void) {
    init();
    sdelay(10, ms);
    while (1) {
        read_sensor();
        process();
        fdelay(20, ms);
    }
}

/*
 * Reads what the PCI source reads, with the same system calls and nothing else: the
 * yardstick of bench_hostroot.py.
 *
 *     pci_read DEVICES_FOLDER ROUNDS
 *
 * prints the best round's processor time in nanoseconds and the number of bytes read.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const files[] = {
    "class",           "vendor",           "device",
    "subsystem_vendor", "subsystem_device", "sriov_totalvfs",
    "iommu_group/type", "iommu/intel-iommu/version", "numa_node",
};

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static long read_all(const char *folder)
{
    char buffer[4096];
    struct dirent **names;
    long bytes = 0;
    int count = scandir(folder, &names, is_name, alphasort);
    if (count < 0) {
        perror(folder);
        exit(1);
    }
    int bus = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < count; i++) {
        int device = openat(bus, names[i]->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
            int fd = openat(device, files[f], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
            if (fd < 0)
                continue;
            ssize_t size = read(fd, buffer, sizeof buffer);
            if (size > 0)
                bytes += size;
            close(fd);
        }
        ssize_t size = readlinkat(device, "driver", buffer, sizeof buffer);
        if (size > 0)
            bytes += size;
        close(device);
        free(names[i]);
    }
    free(names);
    close(bus);
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: pci_read DEVICES_FOLDER ROUNDS\n");
        return 2;
    }
    long best = 0, bytes = 0;
    for (int round = atoi(argv[2]); round > 0; round--) {
        struct timespec start, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        bytes = read_all(argv[1]);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        long took = (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec;
        if (best == 0 || took < best)
            best = took;
    }
    printf("%ld %ld\n", best, bytes);
    return 0;
}

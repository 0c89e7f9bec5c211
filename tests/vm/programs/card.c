/* What a network card says of itself, by the older interface of the kernel (SIOCETHTOOL), one setting a line: the judge
 * of what planish sets over netlink, which it knows nothing of. `card NAME`. */

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int ask(int fd, const char *name, void *what)
{
    struct ifreq request = {0};

    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    request.ifr_data = what;
    return ioctl(fd, SIOCETHTOOL, &request);
}

int main(int count, char **words)
{
    struct ethtool_ringparam rings = {.cmd = ETHTOOL_GRINGPARAM};
    struct ethtool_coalesce coalesce = {.cmd = ETHTOOL_GCOALESCE};
    struct ethtool_value gro = {.cmd = ETHTOOL_GGRO};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (count != 2 || fd < 0)
        return 2;
    if (!ask(fd, words[1], &rings))
        printf("rings_rx %u\nrings_tx %u\nrings_rx_max %u\n", rings.rx_pending, rings.tx_pending,
               rings.rx_max_pending);
    if (!ask(fd, words[1], &coalesce))
        printf("coalesce_tx_frames %u\n", coalesce.tx_max_coalesced_frames);
    if (!ask(fd, words[1], &gro))
        printf("feature_gro %u\n", !!gro.data);
    return 0;
}

# web01.example.com 52:54:00:ab:cd:ee BOOTIF=01-52-54-00-ab-cd-ee
net.ipv4.conf.all.arp = 10.0.0.1:5432, [2a01:4f8::1], 5254.00ab.cdee

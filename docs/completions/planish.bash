_planish() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="planish"
                ;;
            planish,apply)
                cmd="planish__subcmd__apply"
                ;;
            planish,check)
                cmd="planish__subcmd__check"
                ;;
            planish,confirm)
                cmd="planish__subcmd__confirm"
                ;;
            planish,diff)
                cmd="planish__subcmd__diff"
                ;;
            planish,doctor)
                cmd="planish__subcmd__doctor"
                ;;
            planish,export)
                cmd="planish__subcmd__export"
                ;;
            planish,help)
                cmd="planish__subcmd__help"
                ;;
            planish,host)
                cmd="planish__subcmd__host"
                ;;
            planish,import)
                cmd="planish__subcmd__import"
                ;;
            planish,install)
                cmd="planish__subcmd__install"
                ;;
            planish,knobs)
                cmd="planish__subcmd__knobs"
                ;;
            planish,latency)
                cmd="planish__subcmd__latency"
                ;;
            planish,log)
                cmd="planish__subcmd__log"
                ;;
            planish,map)
                cmd="planish__subcmd__map"
                ;;
            planish,move)
                cmd="planish__subcmd__move"
                ;;
            planish,plan)
                cmd="planish__subcmd__plan"
                ;;
            planish,profiles)
                cmd="planish__subcmd__profiles"
                ;;
            planish,prove)
                cmd="planish__subcmd__prove"
                ;;
            planish,run)
                cmd="planish__subcmd__run"
                ;;
            planish,size)
                cmd="planish__subcmd__size"
                ;;
            planish,text)
                cmd="planish__subcmd__text"
                ;;
            planish,top)
                cmd="planish__subcmd__top"
                ;;
            planish,topo)
                cmd="planish__subcmd__topo"
                ;;
            planish,trial)
                cmd="planish__subcmd__trial"
                ;;
            planish,undo)
                cmd="planish__subcmd__undo"
                ;;
            planish,version)
                cmd="planish__subcmd__version"
                ;;
            planish,workload)
                cmd="planish__subcmd__workload"
                ;;
            planish__subcmd__help,apply)
                cmd="planish__subcmd__help__subcmd__apply"
                ;;
            planish__subcmd__help,check)
                cmd="planish__subcmd__help__subcmd__check"
                ;;
            planish__subcmd__help,confirm)
                cmd="planish__subcmd__help__subcmd__confirm"
                ;;
            planish__subcmd__help,diff)
                cmd="planish__subcmd__help__subcmd__diff"
                ;;
            planish__subcmd__help,doctor)
                cmd="planish__subcmd__help__subcmd__doctor"
                ;;
            planish__subcmd__help,export)
                cmd="planish__subcmd__help__subcmd__export"
                ;;
            planish__subcmd__help,help)
                cmd="planish__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__help,host)
                cmd="planish__subcmd__help__subcmd__host"
                ;;
            planish__subcmd__help,import)
                cmd="planish__subcmd__help__subcmd__import"
                ;;
            planish__subcmd__help,install)
                cmd="planish__subcmd__help__subcmd__install"
                ;;
            planish__subcmd__help,knobs)
                cmd="planish__subcmd__help__subcmd__knobs"
                ;;
            planish__subcmd__help,latency)
                cmd="planish__subcmd__help__subcmd__latency"
                ;;
            planish__subcmd__help,log)
                cmd="planish__subcmd__help__subcmd__log"
                ;;
            planish__subcmd__help,map)
                cmd="planish__subcmd__help__subcmd__map"
                ;;
            planish__subcmd__help,move)
                cmd="planish__subcmd__help__subcmd__move"
                ;;
            planish__subcmd__help,plan)
                cmd="planish__subcmd__help__subcmd__plan"
                ;;
            planish__subcmd__help,profiles)
                cmd="planish__subcmd__help__subcmd__profiles"
                ;;
            planish__subcmd__help,prove)
                cmd="planish__subcmd__help__subcmd__prove"
                ;;
            planish__subcmd__help,run)
                cmd="planish__subcmd__help__subcmd__run"
                ;;
            planish__subcmd__help,size)
                cmd="planish__subcmd__help__subcmd__size"
                ;;
            planish__subcmd__help,text)
                cmd="planish__subcmd__help__subcmd__text"
                ;;
            planish__subcmd__help,top)
                cmd="planish__subcmd__help__subcmd__top"
                ;;
            planish__subcmd__help,topo)
                cmd="planish__subcmd__help__subcmd__topo"
                ;;
            planish__subcmd__help,trial)
                cmd="planish__subcmd__help__subcmd__trial"
                ;;
            planish__subcmd__help,undo)
                cmd="planish__subcmd__help__subcmd__undo"
                ;;
            planish__subcmd__help,version)
                cmd="planish__subcmd__help__subcmd__version"
                ;;
            planish__subcmd__help,workload)
                cmd="planish__subcmd__help__subcmd__workload"
                ;;
            planish__subcmd__help__subcmd__host,diff)
                cmd="planish__subcmd__help__subcmd__host__subcmd__diff"
                ;;
            planish__subcmd__help__subcmd__host,record)
                cmd="planish__subcmd__help__subcmd__host__subcmd__record"
                ;;
            planish__subcmd__help__subcmd__install,check)
                cmd="planish__subcmd__help__subcmd__install__subcmd__check"
                ;;
            planish__subcmd__help__subcmd__install,publish)
                cmd="planish__subcmd__help__subcmd__install__subcmd__publish"
                ;;
            planish__subcmd__help__subcmd__install,warm)
                cmd="planish__subcmd__help__subcmd__install__subcmd__warm"
                ;;
            planish__subcmd__help__subcmd__prove,numa)
                cmd="planish__subcmd__help__subcmd__prove__subcmd__numa"
                ;;
            planish__subcmd__help__subcmd__prove,postgres)
                cmd="planish__subcmd__help__subcmd__prove__subcmd__postgres"
                ;;
            planish__subcmd__help__subcmd__prove,series)
                cmd="planish__subcmd__help__subcmd__prove__subcmd__series"
                ;;
            planish__subcmd__help__subcmd__prove,text)
                cmd="planish__subcmd__help__subcmd__prove__subcmd__text"
                ;;
            planish__subcmd__help__subcmd__text,bolt)
                cmd="planish__subcmd__help__subcmd__text__subcmd__bolt"
                ;;
            planish__subcmd__help__subcmd__text,cc)
                cmd="planish__subcmd__help__subcmd__text__subcmd__cc"
                ;;
            planish__subcmd__help__subcmd__text,check)
                cmd="planish__subcmd__help__subcmd__text__subcmd__check"
                ;;
            planish__subcmd__help__subcmd__text,fetch)
                cmd="planish__subcmd__help__subcmd__text__subcmd__fetch"
                ;;
            planish__subcmd__help__subcmd__text,huge)
                cmd="planish__subcmd__help__subcmd__text__subcmd__huge"
                ;;
            planish__subcmd__help__subcmd__text,import)
                cmd="planish__subcmd__help__subcmd__text__subcmd__import"
                ;;
            planish__subcmd__help__subcmd__text,ld)
                cmd="planish__subcmd__help__subcmd__text__subcmd__ld"
                ;;
            planish__subcmd__help__subcmd__text,link-flags)
                cmd="planish__subcmd__help__subcmd__text__subcmd__link__subcmd__flags"
                ;;
            planish__subcmd__help__subcmd__text,merge)
                cmd="planish__subcmd__help__subcmd__text__subcmd__merge"
                ;;
            planish__subcmd__help__subcmd__text,order)
                cmd="planish__subcmd__help__subcmd__text__subcmd__order"
                ;;
            planish__subcmd__help__subcmd__text,prune)
                cmd="planish__subcmd__help__subcmd__text__subcmd__prune"
                ;;
            planish__subcmd__help__subcmd__text,publish)
                cmd="planish__subcmd__help__subcmd__text__subcmd__publish"
                ;;
            planish__subcmd__help__subcmd__text,record)
                cmd="planish__subcmd__help__subcmd__text__subcmd__record"
                ;;
            planish__subcmd__help__subcmd__text,show)
                cmd="planish__subcmd__help__subcmd__text__subcmd__show"
                ;;
            planish__subcmd__help__subcmd__text,verify)
                cmd="planish__subcmd__help__subcmd__text__subcmd__verify"
                ;;
            planish__subcmd__help__subcmd__trial,honesty)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__honesty"
                ;;
            planish__subcmd__help__subcmd__trial,new)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__new"
                ;;
            planish__subcmd__help__subcmd__trial,resume)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__resume"
                ;;
            planish__subcmd__help__subcmd__trial,run)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__run"
                ;;
            planish__subcmd__help__subcmd__trial,selfcheck)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__selfcheck"
                ;;
            planish__subcmd__help__subcmd__trial,status)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__status"
                ;;
            planish__subcmd__help__subcmd__trial,stop)
                cmd="planish__subcmd__help__subcmd__trial__subcmd__stop"
                ;;
            planish__subcmd__help__subcmd__workload,scan)
                cmd="planish__subcmd__help__subcmd__workload__subcmd__scan"
                ;;
            planish__subcmd__help__subcmd__workload,series)
                cmd="planish__subcmd__help__subcmd__workload__subcmd__series"
                ;;
            planish__subcmd__host,diff)
                cmd="planish__subcmd__host__subcmd__diff"
                ;;
            planish__subcmd__host,help)
                cmd="planish__subcmd__host__subcmd__help"
                ;;
            planish__subcmd__host,record)
                cmd="planish__subcmd__host__subcmd__record"
                ;;
            planish__subcmd__host__subcmd__help,diff)
                cmd="planish__subcmd__host__subcmd__help__subcmd__diff"
                ;;
            planish__subcmd__host__subcmd__help,help)
                cmd="planish__subcmd__host__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__host__subcmd__help,record)
                cmd="planish__subcmd__host__subcmd__help__subcmd__record"
                ;;
            planish__subcmd__install,check)
                cmd="planish__subcmd__install__subcmd__check"
                ;;
            planish__subcmd__install,help)
                cmd="planish__subcmd__install__subcmd__help"
                ;;
            planish__subcmd__install,publish)
                cmd="planish__subcmd__install__subcmd__publish"
                ;;
            planish__subcmd__install,warm)
                cmd="planish__subcmd__install__subcmd__warm"
                ;;
            planish__subcmd__install__subcmd__help,check)
                cmd="planish__subcmd__install__subcmd__help__subcmd__check"
                ;;
            planish__subcmd__install__subcmd__help,help)
                cmd="planish__subcmd__install__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__install__subcmd__help,publish)
                cmd="planish__subcmd__install__subcmd__help__subcmd__publish"
                ;;
            planish__subcmd__install__subcmd__help,warm)
                cmd="planish__subcmd__install__subcmd__help__subcmd__warm"
                ;;
            planish__subcmd__prove,help)
                cmd="planish__subcmd__prove__subcmd__help"
                ;;
            planish__subcmd__prove,numa)
                cmd="planish__subcmd__prove__subcmd__numa"
                ;;
            planish__subcmd__prove,postgres)
                cmd="planish__subcmd__prove__subcmd__postgres"
                ;;
            planish__subcmd__prove,series)
                cmd="planish__subcmd__prove__subcmd__series"
                ;;
            planish__subcmd__prove,text)
                cmd="planish__subcmd__prove__subcmd__text"
                ;;
            planish__subcmd__prove__subcmd__help,help)
                cmd="planish__subcmd__prove__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__prove__subcmd__help,numa)
                cmd="planish__subcmd__prove__subcmd__help__subcmd__numa"
                ;;
            planish__subcmd__prove__subcmd__help,postgres)
                cmd="planish__subcmd__prove__subcmd__help__subcmd__postgres"
                ;;
            planish__subcmd__prove__subcmd__help,series)
                cmd="planish__subcmd__prove__subcmd__help__subcmd__series"
                ;;
            planish__subcmd__prove__subcmd__help,text)
                cmd="planish__subcmd__prove__subcmd__help__subcmd__text"
                ;;
            planish__subcmd__text,bolt)
                cmd="planish__subcmd__text__subcmd__bolt"
                ;;
            planish__subcmd__text,cc)
                cmd="planish__subcmd__text__subcmd__cc"
                ;;
            planish__subcmd__text,check)
                cmd="planish__subcmd__text__subcmd__check"
                ;;
            planish__subcmd__text,fetch)
                cmd="planish__subcmd__text__subcmd__fetch"
                ;;
            planish__subcmd__text,help)
                cmd="planish__subcmd__text__subcmd__help"
                ;;
            planish__subcmd__text,huge)
                cmd="planish__subcmd__text__subcmd__huge"
                ;;
            planish__subcmd__text,import)
                cmd="planish__subcmd__text__subcmd__import"
                ;;
            planish__subcmd__text,ld)
                cmd="planish__subcmd__text__subcmd__ld"
                ;;
            planish__subcmd__text,link-flags)
                cmd="planish__subcmd__text__subcmd__link__subcmd__flags"
                ;;
            planish__subcmd__text,merge)
                cmd="planish__subcmd__text__subcmd__merge"
                ;;
            planish__subcmd__text,order)
                cmd="planish__subcmd__text__subcmd__order"
                ;;
            planish__subcmd__text,prune)
                cmd="planish__subcmd__text__subcmd__prune"
                ;;
            planish__subcmd__text,publish)
                cmd="planish__subcmd__text__subcmd__publish"
                ;;
            planish__subcmd__text,record)
                cmd="planish__subcmd__text__subcmd__record"
                ;;
            planish__subcmd__text,show)
                cmd="planish__subcmd__text__subcmd__show"
                ;;
            planish__subcmd__text,verify)
                cmd="planish__subcmd__text__subcmd__verify"
                ;;
            planish__subcmd__text__subcmd__help,bolt)
                cmd="planish__subcmd__text__subcmd__help__subcmd__bolt"
                ;;
            planish__subcmd__text__subcmd__help,cc)
                cmd="planish__subcmd__text__subcmd__help__subcmd__cc"
                ;;
            planish__subcmd__text__subcmd__help,check)
                cmd="planish__subcmd__text__subcmd__help__subcmd__check"
                ;;
            planish__subcmd__text__subcmd__help,fetch)
                cmd="planish__subcmd__text__subcmd__help__subcmd__fetch"
                ;;
            planish__subcmd__text__subcmd__help,help)
                cmd="planish__subcmd__text__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__text__subcmd__help,huge)
                cmd="planish__subcmd__text__subcmd__help__subcmd__huge"
                ;;
            planish__subcmd__text__subcmd__help,import)
                cmd="planish__subcmd__text__subcmd__help__subcmd__import"
                ;;
            planish__subcmd__text__subcmd__help,ld)
                cmd="planish__subcmd__text__subcmd__help__subcmd__ld"
                ;;
            planish__subcmd__text__subcmd__help,link-flags)
                cmd="planish__subcmd__text__subcmd__help__subcmd__link__subcmd__flags"
                ;;
            planish__subcmd__text__subcmd__help,merge)
                cmd="planish__subcmd__text__subcmd__help__subcmd__merge"
                ;;
            planish__subcmd__text__subcmd__help,order)
                cmd="planish__subcmd__text__subcmd__help__subcmd__order"
                ;;
            planish__subcmd__text__subcmd__help,prune)
                cmd="planish__subcmd__text__subcmd__help__subcmd__prune"
                ;;
            planish__subcmd__text__subcmd__help,publish)
                cmd="planish__subcmd__text__subcmd__help__subcmd__publish"
                ;;
            planish__subcmd__text__subcmd__help,record)
                cmd="planish__subcmd__text__subcmd__help__subcmd__record"
                ;;
            planish__subcmd__text__subcmd__help,show)
                cmd="planish__subcmd__text__subcmd__help__subcmd__show"
                ;;
            planish__subcmd__text__subcmd__help,verify)
                cmd="planish__subcmd__text__subcmd__help__subcmd__verify"
                ;;
            planish__subcmd__trial,help)
                cmd="planish__subcmd__trial__subcmd__help"
                ;;
            planish__subcmd__trial,honesty)
                cmd="planish__subcmd__trial__subcmd__honesty"
                ;;
            planish__subcmd__trial,new)
                cmd="planish__subcmd__trial__subcmd__new"
                ;;
            planish__subcmd__trial,resume)
                cmd="planish__subcmd__trial__subcmd__resume"
                ;;
            planish__subcmd__trial,run)
                cmd="planish__subcmd__trial__subcmd__run"
                ;;
            planish__subcmd__trial,selfcheck)
                cmd="planish__subcmd__trial__subcmd__selfcheck"
                ;;
            planish__subcmd__trial,status)
                cmd="planish__subcmd__trial__subcmd__status"
                ;;
            planish__subcmd__trial,stop)
                cmd="planish__subcmd__trial__subcmd__stop"
                ;;
            planish__subcmd__trial__subcmd__help,help)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__trial__subcmd__help,honesty)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__honesty"
                ;;
            planish__subcmd__trial__subcmd__help,new)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__new"
                ;;
            planish__subcmd__trial__subcmd__help,resume)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__resume"
                ;;
            planish__subcmd__trial__subcmd__help,run)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__run"
                ;;
            planish__subcmd__trial__subcmd__help,selfcheck)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__selfcheck"
                ;;
            planish__subcmd__trial__subcmd__help,status)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__status"
                ;;
            planish__subcmd__trial__subcmd__help,stop)
                cmd="planish__subcmd__trial__subcmd__help__subcmd__stop"
                ;;
            planish__subcmd__workload,help)
                cmd="planish__subcmd__workload__subcmd__help"
                ;;
            planish__subcmd__workload,scan)
                cmd="planish__subcmd__workload__subcmd__scan"
                ;;
            planish__subcmd__workload,series)
                cmd="planish__subcmd__workload__subcmd__series"
                ;;
            planish__subcmd__workload__subcmd__help,help)
                cmd="planish__subcmd__workload__subcmd__help__subcmd__help"
                ;;
            planish__subcmd__workload__subcmd__help,scan)
                cmd="planish__subcmd__workload__subcmd__help__subcmd__scan"
                ;;
            planish__subcmd__workload__subcmd__help,series)
                cmd="planish__subcmd__workload__subcmd__help__subcmd__series"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        planish)
            opts="-q -v -h -V --json --root --state --color --quiet --verbose --timings --help --version doctor plan apply confirm check undo log knobs profiles import export size map top move topo latency run host diff install text trial prove workload version help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__apply)
            opts="-q -v -h --yes --confirm --persist --once --reason --allow --allow-knob --service --exclude --instead-of --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --confirm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reason)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow)
                    COMPREPLY=($(compgen -W "availability durability" -- "${cur}"))
                    return 0
                    ;;
                --allow-knob)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask" -- "${cur}"))
                    return 0
                    ;;
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask cloud-init rc.local init-scripts units cron cron.daily sysfsutils cpufrequtils cpupower sysctl.d tmpfiles.d udev-programs udev tuned saptune irqbalance numad power-profiles-daemon bpftune kubelet kubelet-cpus" -- "${cur}"))
                    return 0
                    ;;
                --instead-of)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__check)
            opts="-q -v -h --exclude --monitor --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --exclude)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask cloud-init rc.local init-scripts units cron cron.daily sysfsutils cpufrequtils cpupower sysctl.d tmpfiles.d udev-programs udev tuned saptune irqbalance numad power-profiles-daemon bpftune kubelet kubelet-cpus" -- "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__confirm)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__diff)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__doctor)
            opts="-q -v -h --service --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__export)
            opts="-o -q -v -h --output --allow --allow-knob --service --exclude --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            [[ ${prev} != export ]] || opts="-o -q -v -h --output --allow --allow-knob --service --exclude --json --root --state --color --quiet --verbose --timings --help script sysctl tuned ansible kernel-args node-tuning"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow)
                    COMPREPLY=($(compgen -W "availability durability" -- "${cur}"))
                    return 0
                    ;;
                --allow-knob)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask" -- "${cur}"))
                    return 0
                    ;;
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask cloud-init rc.local init-scripts units cron cron.daily sysfsutils cpufrequtils cpupower sysctl.d tmpfiles.d udev-programs udev tuned saptune irqbalance numad power-profiles-daemon bpftune kubelet kubelet-cpus" -- "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help)
            opts="doctor plan apply confirm check undo log knobs profiles import export size map top move topo latency run host diff install text trial prove workload version help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__apply)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__confirm)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__diff)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__export)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__host)
            opts="record diff"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__host__subcmd__diff)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__host__subcmd__record)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__install)
            opts="check warm publish"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__install__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__install__subcmd__publish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__install__subcmd__warm)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__knobs)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__latency)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__log)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__map)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__move)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__plan)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__profiles)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__prove)
            opts="series postgres numa text"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__prove__subcmd__numa)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__prove__subcmd__postgres)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__prove__subcmd__series)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__prove__subcmd__text)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__size)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text)
            opts="record import merge show order link-flags cc ld check bolt huge verify publish fetch prune"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__bolt)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__cc)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__fetch)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__huge)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__ld)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__link__subcmd__flags)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__merge)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__order)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__prune)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__publish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__record)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__text__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__top)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__topo)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial)
            opts="new run status stop resume selfcheck honesty"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__honesty)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__new)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__resume)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__selfcheck)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__trial__subcmd__stop)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__undo)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__version)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__workload)
            opts="series scan"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__workload__subcmd__scan)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__help__subcmd__workload__subcmd__series)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help record diff help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host__subcmd__diff)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host__subcmd__help)
            opts="record diff help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host__subcmd__help__subcmd__diff)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host__subcmd__help__subcmd__record)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__host__subcmd__record)
            opts="-q -v -h --note --writable --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --note)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__import)
            opts="-o -q -v -h --from --name --output --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --from)
                    COMPREPLY=($(compgen -W "script sysctl tmpfiles tuned saptune kernel-args ansible node-tuning udev unit" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help check warm publish help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__check)
            opts="-q -v -h --exclude --every --program --yes --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --exclude)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask cloud-init rc.local init-scripts units cron cron.daily sysfsutils cpufrequtils cpupower sysctl.d tmpfiles.d udev-programs udev tuned saptune irqbalance numad power-profiles-daemon bpftune kubelet kubelet-cpus" -- "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__help)
            opts="check warm publish help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__help__subcmd__publish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__help__subcmd__warm)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__publish)
            opts="-q -v -h --yes --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__install__subcmd__warm)
            opts="-q -v -h --unit --every --program --yes --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --unit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__knobs)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__latency)
            opts="-q -v -h --cpus --rounds --html --jitter --seconds --threshold --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --cpus)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__log)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__map)
            opts="-q -v -h --tree --postgres --query --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --postgres)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --query)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__move)
            opts="-q -v -h --tree --to --from --only --range --cpus --threads --against-policy --locked --rate --dry-run --reason --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --to)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --only)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --range)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpus)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reason)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__plan)
            opts="-o -q -v -h --output --persist --allow --allow-knob --service --exclude --instead-of --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow)
                    COMPREPLY=($(compgen -W "availability durability" -- "${cur}"))
                    return 0
                    ;;
                --allow-knob)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask" -- "${cur}"))
                    return 0
                    ;;
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask cloud-init rc.local init-scripts units cron cron.daily sysfsutils cpufrequtils cpupower sysctl.d tmpfiles.d udev-programs udev tuned saptune irqbalance numad power-profiles-daemon bpftune kubelet kubelet-cpus" -- "${cur}"))
                    return 0
                    ;;
                --instead-of)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__profiles)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove)
            opts="-q -v -h --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help series postgres numa text help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__help)
            opts="series postgres numa text help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__help__subcmd__numa)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__help__subcmd__postgres)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__help__subcmd__series)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__help__subcmd__text)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__numa)
            opts="-q -v -h --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__postgres)
            opts="-q -v -h --scale --shared-buffers --clients --workload --bin --conn --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shared-buffers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conn)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__series)
            opts="-q -v -h --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__prove__subcmd__text)
            opts="-q -v -h --load --folder --source --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --folder)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__run)
            opts="-q -v -h --numa --huge --cpus --node --each-node --malloc --thp --memlock --prefault-threads --no-prefault --min --verify-after --report --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --numa)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --huge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpus)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --malloc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --thp)
                    COMPREPLY=($(compgen -W "never" -- "${cur}"))
                    return 0
                    ;;
                --memlock)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefault-threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --verify-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__size)
            opts="-o -q -v -h --bytes --regions --postgres --postgres-program --headroom --page-size --output --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --regions)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --postgres)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --postgres-program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --headroom)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --page-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help record import merge show order link-flags cc ld check bolt huge verify publish fetch prune help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__bolt)
            opts="-o -q -v -h --profile --instrument --output --replace --packaged --layout --algorithm --event --skip-funcs --fdata --every --each-process --try --same-output --llvm-bolt --bolt-option --log --dry-run --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --layout)
                    COMPREPLY=($(compgen -W "auto blocks functions" -- "${cur}"))
                    return 0
                    ;;
                --algorithm)
                    COMPREPLY=($(compgen -W "keep weight density c3 cdsort cdsort-calls" -- "${cur}"))
                    return 0
                    ;;
                --event)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --skip-funcs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fdata)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --try)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --llvm-bolt)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bolt-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__cc)
            opts="-q -v -h --order --profile --huge --only --link-only --strict --time --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --order)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --huge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --only)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__check)
            opts="-q -v -h --page --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --page)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__fetch)
            opts="-q -v -h --pin --order --profile --store --max-age --min-overlap --strict --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --pin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-age)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-overlap)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help)
            opts="record import merge show order link-flags cc ld check bolt huge verify publish fetch prune help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__bolt)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__cc)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__fetch)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__huge)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__ld)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__link__subcmd__flags)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__merge)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__order)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__prune)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__publish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__record)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__help__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__huge)
            opts="-q -v -h --route --packaged --least --max --prepare --dry-run --reason --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --route)
                    COMPREPLY=($(compgen -W "warm copy collapse" -- "${cur}"))
                    return 0
                    ;;
                --least)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prepare)
                    COMPREPLY=($(compgen -W "compact drop-caches" -- "${cur}"))
                    return 0
                    ;;
                --reason)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__import)
            opts="-o -q -v -h --program --format --event --host --duty --cut --output --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "planish perf-data perf-script folded pprof fdata autofdo callgrind hfsort" -- "${cur}"))
                    return 0
                    ;;
                --event)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --duty)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__ld)
            opts="-q -v -h --order --profile --huge --only --link-only --strict --time --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --order)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --huge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --only)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__link__subcmd__flags)
            opts="-q -v -h --compiler --linker --order --huge --frame-pointers --bolt --for --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --compiler)
                    COMPREPLY=($(compgen -W "gcc clang rustc" -- "${cur}"))
                    return 0
                    ;;
                --linker)
                    COMPREPLY=($(compgen -W "lld gold bfd" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --huge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -W "make cmake cargo meson bazel buck2 dockerfile" -- "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__merge)
            opts="-o -q -v -h --half-life --host-cap --output --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --half-life)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host-cap)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__order)
            opts="-o -q -v -h --profile --previous --algorithm --form --margin --output --autofdo --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --previous)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --algorithm)
                    COMPREPLY=($(compgen -W "keep weight density c3 cdsort cdsort-calls" -- "${cur}"))
                    return 0
                    ;;
                --form)
                    COMPREPLY=($(compgen -W "symbols call-graph gold gnu-ld linker-script bolt" -- "${cur}"))
                    return 0
                    ;;
                --margin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --autofdo)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__prune)
            opts="-q -v -h --store --pin --keep --min-age --delete --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-age)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__publish)
            opts="-q -v -h --store --pin --order --copy --proof --max-age --min-overlap --force --branch --push --timer --record-unit --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proof)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-age)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-overlap)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --branch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --push)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record-unit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__record)
            opts="-a -o -q -v -h --pid --cgroup --unit --all --program --seconds --rate --duty --event --raw --output --report --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --pid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cgroup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --unit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --duty)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --event)
                    COMPREPLY=($(compgen -W "branches cycles cpu-clock flat" -- "${cur}"))
                    return 0
                    ;;
                --raw)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__show)
            opts="-q -v -h --program --top --html --json --root --state --color --quiet --verbose --timings --help clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --top)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__text__subcmd__verify)
            opts="-q -v -h --profile --inside --huge --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inside)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --huge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__top)
            opts="-q -v -h --once --count --interval --sort --filter --record --replay --c2c --seconds --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -W "pid cpu resident remote tables huge swap faults" -- "${cur}"))
                    return 0
                    ;;
                --filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__topo)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help new run status stop resume selfcheck honesty help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help)
            opts="new run status stop resume selfcheck honesty help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__honesty)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__new)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__resume)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__selfcheck)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__help__subcmd__stop)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__honesty)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__new)
            opts="-o -q -v -h --cmd --profile --output --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --cmd)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -W "clickhouse elasticsearch hana low-latency mongodb mongodb-7 mysql oracle oracle-19c postgres realtime redis redpanda series throughput zepto" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__resume)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__run)
            opts="-q -v -h --keep --duet --allow --allow-knob --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --allow)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-knob)
                    COMPREPLY=($(compgen -W "block.add_random block.io_poll block.iostats block.max_sectors_kb block.nomerges block.nr_requests block.read_ahead_kb block.rq_affinity block.scheduler block.wbt_lat_us block.write_cache boot.amd_pstate boot.audit boot.clocksource boot.cpufreq_default_governor boot.default_hugepagesz boot.hugepages.1g boot.hugepages.2m boot.hugetlb_cma boot.hugetlb_free_vmemmap boot.idle boot.intel_idle_max_cstate boot.intel_iommu boot.intel_pstate boot.iommu boot.iommu_passthrough boot.iommu_strict boot.irqaffinity boot.isolcpus boot.mce boot.mitigations boot.nohz_full boot.nosmt boot.nosoftlockup boot.nowatchdog boot.numa boot.pcie_aspm boot.processor_max_cstate boot.rcu_nocb_poll boot.rcu_nocbs boot.rcupdate_rcu_normal_after_boot boot.rcutree_kthread_prio boot.rcutree_nohz_full_patience_ms boot.skew_tick boot.systemd_cpu_affinity boot.thp_anon boot.thp_shmem boot.transparent_hugepage boot.transparent_hugepage_shmem boot.transparent_hugepage_tmpfs boot.tsc boot.tsx clock.source cpu.boost cpu.dma_latency_us cpu.energy_perf_bias cpu.epp cpu.governor cpu.haltpoll_grow_start_ns cpu.haltpoll_ns cpu.hwp_dynamic_boost cpu.idle_governor cpu.idle_state_disable cpu.max_freq_khz cpu.max_perf_pct cpu.min_freq_khz cpu.min_perf_pct cpu.no_turbo cpu.online cpu.platform_profile cpu.resume_latency_us cpu.smt cpu.uncore_elc_floor_khz cpu.uncore_elc_high_enable cpu.uncore_elc_high_percent cpu.uncore_elc_low_percent cpu.uncore_max_khz cpu.uncore_min_khz cpuset.partition fs.aio-max-nr fs.epoll.max_user_watches fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open hugepages.1g hugepages.1g.overcommit hugepages.1g.total hugepages.2m hugepages.2m.overcommit hugepages.2m.total hugepages.32m hugepages.512m irq.affinity irq.default_affinity kernel.hung_task_timeout_secs kernel.kptr_restrict kernel.msgmax kernel.msgmnb kernel.msgmni kernel.nmi_watchdog kernel.numa_balancing kernel.numa_balancing_promote_mbps kernel.perf_cpu_time_max_percent kernel.perf_event_max_sample_rate kernel.perf_event_mlock_kb kernel.perf_event_paranoid kernel.pid_max kernel.printk kernel.randomize_va_space kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.sched_min_granularity_ns kernel.sched_rt_runtime_us kernel.sched_wakeup_granularity_ns kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.soft_watchdog kernel.threads-max kernel.timer_migration kernel.watchdog kernel.watchdog_cpumask kernel.watchdog_thresh mce.check_interval_s mce.ignore_corrected mm.ksm_run mm.lru_gen mm.lru_gen_min_ttl_ms mm.numa_demotion mount.atime net.channels_combined net.channels_rx net.channels_tx net.coalesce_adaptive_rx net.coalesce_adaptive_tx net.coalesce_rx_frames net.coalesce_rx_usecs net.coalesce_tx_frames net.coalesce_tx_usecs net.conntrack_hashsize net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_default net.core.rmem_max net.core.rps_default_mask net.core.rps_sock_flow_entries net.core.somaxconn net.core.wmem_default net.core.wmem_max net.feature_gro net.feature_gso net.feature_lro net.feature_ntuple net.feature_tso net.feature_tso6 net.gro_flush_timeout_ns net.ipv4.conf.all.arp_announce net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_low_latency net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat net.ipv4.tcp_retries2 net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syn_retries net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.udp_mem net.mtu net.napi_defer_hard_irqs net.netfilter.nf_conntrack_max net.pause_autoneg net.pause_rx net.pause_tx net.rings_rx net.rings_tx net.rps_cpus net.rps_flow_cnt net.threaded_napi net.tx_queue_len net.xps_cpus nvme.io_timeout_s nvme.max_retries nvme.poll_queues pcie.aspm_policy resctrl.default resctrl.group sched.base_slice_ns sched.fair_server_runtime_ns sched.ksoftirqd sched.ktimers sched.migration_cost_ns sched.min_granularity_ns sched.tunable_scaling sched.wakeup_granularity_ns scsi.cache_type selinux.avc_cache_threshold systemd.cpu_affinity thp.defrag thp.enabled thp.khugepaged.alloc_sleep_ms thp.khugepaged.defrag thp.khugepaged.max_ptes_none thp.khugepaged.max_ptes_shared thp.khugepaged.max_ptes_swap thp.khugepaged.pages_to_scan thp.khugepaged.scan_sleep_ms thp.shmem_enabled thp.size_enabled thp.size_shmem_enabled tmpfs.huge tmpfs.size unit.allowed_cpus unit.core unit.cpu_weight unit.glibc_tunables unit.io_weight unit.malloc_arena_max unit.memlock unit.memory_low unit.memory_min unit.memory_swap_max unit.nice unit.nofile unit.nproc unit.oom_score_adjust unit.placement unit.slice unit.tasks_max unit.timer_slack vm.compact_memory vm.compact_unevictable_allowed vm.compaction_proactiveness vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.drop_caches vm.hugetlb_optimize_vmemmap vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.page-cluster vm.stat_interval vm.swappiness vm.vfs_cache_pressure vm.watermark_boost_factor vm.watermark_scale_factor vm.zone_reclaim_mode workqueue.cpumask workqueue.writeback_cpumask" -- "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__selfcheck)
            opts="-q -v -h --duet --quick --seed --budget --html --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__status)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__trial__subcmd__stop)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__undo)
            opts="-q -v -h --all --force --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__version)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload)
            opts="-q -v -h --json --root --state --color --quiet --verbose --timings --help series scan help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload__subcmd__help)
            opts="series scan help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload__subcmd__help__subcmd__scan)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload__subcmd__help__subcmd__series)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload__subcmd__scan)
            opts="-q -v -h --bytes --place --pages --fallback --cpu --threads --seed --warm-up --seconds --rounds --serve --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --place)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fallback)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        planish__subcmd__workload__subcmd__series)
            opts="-q -v -h --bytes --queries --pages --fallback --cpu --node --threads --seed --warm-up --seconds --rounds --serve --json --root --state --color --quiet --verbose --timings --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --queries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fallback)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _planish -o nosort -o bashdefault -o default planish
else
    complete -F _planish -o bashdefault -o default planish
fi

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_planish_global_optspecs
    string join \n json root= state= color= q/quiet v/verbose timings clock= h/help V/version
end

function __fish_planish_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_planish_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_planish_using_subcommand
    set -l cmd (__fish_planish_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c planish -n "__fish_planish_needs_command" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_needs_command" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_needs_command" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_needs_command" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_needs_command" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_needs_command" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_needs_command" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_needs_command" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_needs_command" -s V -l version -d 'Print version'
complete -c planish -n "__fish_planish_needs_command" -f -a "doctor" -d 'Tell what this machine loses, why, and the cure'
complete -c planish -n "__fish_planish_needs_command" -f -a "plan" -d 'Show before and after of every step, and what it may cost'
complete -c planish -n "__fish_planish_needs_command" -f -a "apply" -d 'Write a plan to the host, read every value back, and keep what it takes to undo it'
complete -c planish -n "__fish_planish_needs_command" -f -a "confirm" -d 'Keep what `apply --confirm` wrote, before its time runs out'
complete -c planish -n "__fish_planish_needs_command" -f -a "check" -d 'Compare the host with a profile, a plan, or what was applied'
complete -c planish -n "__fish_planish_needs_command" -f -a "undo" -d 'Put the host back as it was before an apply'
complete -c planish -n "__fish_planish_needs_command" -f -a "watch-confirm" -d 'Undo an entry at its deadline unless it is confirmed before'
complete -c planish -n "__fish_planish_needs_command" -f -a "hold" -d 'Hold a limit of the kernel until this process is ended'
complete -c planish -n "__fish_planish_needs_command" -f -a "log" -d 'List what was done to this host, newest first'
complete -c planish -n "__fish_planish_needs_command" -f -a "knobs" -d 'List every setting that planish knows, and what it means on this host'
complete -c planish -n "__fish_planish_needs_command" -f -a "import" -d 'Read the settings of another tool as a profile'
complete -c planish -n "__fish_planish_needs_command" -f -a "export" -d 'Write a profile or a plan for another tool'
complete -c planish -n "__fish_planish_needs_command" -f -a "size" -d 'Compute how many huge pages a service needs on each node, and show the arithmetic'
complete -c planish -n "__fish_planish_needs_command" -f -a "map" -d 'Show where the memory of a process lies: what it is for, on which pages, on which node'
complete -c planish -n "__fish_planish_needs_command" -f -a "move" -d 'Move memory and threads of running processes to other nodes and CPUs'
complete -c planish -n "__fish_planish_needs_command" -f -a "topo" -d 'Show CPUs, caches, NUMA nodes and where devices are attached'
complete -c planish -n "__fish_planish_needs_command" -f -a "latency" -d 'Measure how far CPUs are from each other and from memory, and what pages of each size cost'
complete -c planish -n "__fish_planish_needs_command" -f -a "run" -d 'Start a program as it is, with its memory where it belongs'
complete -c planish -n "__fish_planish_needs_command" -f -a "host" -d 'Record this machine in a folder, or compare two recorded ones'
complete -c planish -n "__fish_planish_needs_command" -f -a "diff" -d 'Tell in which facts, knobs and settings of the next boot two machines differ'
complete -c planish -n "__fish_planish_needs_command" -f -a "install" -d 'Have systemd do something of planish again and again'
complete -c planish -n "__fish_planish_needs_command" -f -a "text" -d 'Lay out a program\'s code by what runs: hot functions together'
complete -c planish -n "__fish_planish_needs_command" -f -a "trial" -d 'Measure on your own workload which changes pay'
complete -c planish -n "__fish_planish_needs_command" -f -a "prove" -d 'Prove on this machine what page sizes and placement are worth'
complete -c planish -n "__fish_planish_needs_command" -f -a "workload" -d 'Run an embedded workload: what the arms of `planish prove` are made of'
complete -c planish -n "__fish_planish_needs_command" -f -a "version" -d 'Print the version, the architecture and how the binary is linked'
complete -c planish -n "__fish_planish_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand doctor" -l service -d 'Look through the eyes of this service too, and size the pools of the profile for it: a process id or a name' -r
complete -c planish -n "__fish_planish_using_subcommand doctor" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand doctor" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand doctor" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand doctor" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand doctor" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand doctor" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand doctor" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand doctor" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand plan" -s o -l output -d 'Save the plan to F, for `planish apply F`' -r -F
complete -c planish -n "__fish_planish_using_subcommand plan" -l allow -d 'Allow steps of these classes besides safe ones: availability, durability' -r
complete -c planish -n "__fish_planish_using_subcommand plan" -l allow-knob -d 'Allow the steps of this knob, whatever its class' -r
complete -c planish -n "__fish_planish_using_subcommand plan" -l service -d 'Size pools for this service: a process id or a name' -r
complete -c planish -n "__fish_planish_using_subcommand plan" -l exclude -d 'Leave this knob as it is; or leave its places to another program that writes them, such as tuned' -r
complete -c planish -n "__fish_planish_using_subcommand plan" -l instead-of -d 'Take the place of this open entry of `planish log`: what both want stays, what it alone wanted goes back, and undo brings back what was before both' -r
complete -c planish -n "__fish_planish_using_subcommand plan" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand plan" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand plan" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand plan" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand plan" -l persist -d 'Show the files too that `apply --persist` writes for the next boot, with their lines'
complete -c planish -n "__fish_planish_using_subcommand plan" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand plan" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand plan" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand plan" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand apply" -l confirm -d 'Undo by itself unless `planish confirm` follows within SECS seconds, 30 days at most' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l reason -d 'Note in the journal why' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l allow -d 'Allow steps of these classes besides safe ones: availability, durability' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l allow-knob -d 'Allow the steps of this knob, whatever its class' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l service -d 'Size pools for this service: a process id or a name' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l exclude -d 'Leave this knob as it is; or leave its places to another program that writes them, such as tuned' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l instead-of -d 'Take the place of this open entry of `planish log`: what both want stays, what it alone wanted goes back, and undo brings back what was before both' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand apply" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand apply" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand apply" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand apply" -l yes -d 'Write without asking'
complete -c planish -n "__fish_planish_using_subcommand apply" -l persist -d 'Also write the files that bring the values back after a reboot'
complete -c planish -n "__fish_planish_using_subcommand apply" -l once -d 'Only for one boot, by an entry that the boot loader takes once: its default stays, until `planish confirm` there'
complete -c planish -n "__fish_planish_using_subcommand apply" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand apply" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand apply" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand apply" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand confirm" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand confirm" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand confirm" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand confirm" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand confirm" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand confirm" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand confirm" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand confirm" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand confirm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand check" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand check" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand check" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand check" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand check" -l monitor -d 'Print one line and end as monitoring expects: 0 ok, 1 warning, 2 critical, 3 unknown'
complete -c planish -n "__fish_planish_using_subcommand check" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand check" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand check" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand check" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand undo" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand undo" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand undo" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand undo" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand undo" -l all -d 'Undo every open entry, newest first'
complete -c planish -n "__fish_planish_using_subcommand undo" -l force -d 'Write the originals even where someone else changed the value since; of an entry that is undone already, where it is named. Of pages that were moved, also those that others moved since; what is hidden or in swap is given up'
complete -c planish -n "__fish_planish_using_subcommand undo" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand undo" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand undo" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand undo" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand undo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand watch-confirm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -f -a "cpu-dma-latency" -d 'The longest wake-up of any CPU'
complete -c planish -n "__fish_planish_using_subcommand hold; and not __fish_seen_subcommand_from cpu-dma-latency help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from cpu-dma-latency" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from help" -f -a "cpu-dma-latency" -d 'The longest wake-up of any CPU'
complete -c planish -n "__fish_planish_using_subcommand hold; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand log" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand log" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand log" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand log" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand log" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand log" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand log" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand log" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand knobs" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand knobs" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand knobs" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand knobs" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand knobs" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand knobs" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand knobs" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand knobs" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand knobs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand import" -l from -d 'The format, where the text does not tell' -r -f -a "script\t'A shell script'
sysctl\t'A file of sysctl.d'
tmpfiles\t'A file of tmpfiles.d'
tuned\t'A profile of tuned'
saptune\t'A note of saptune'
kernel-args\t'Arguments of the kernel command line'
ansible\t'Tasks of Ansible'
node-tuning\t'An object of the Node Tuning operator'
udev\t'Rules of udev'"
complete -c planish -n "__fish_planish_using_subcommand import" -l name -d 'The name of the profile; without it the file\'s own without its ending, or that of the folder of a tuned.conf' -r
complete -c planish -n "__fish_planish_using_subcommand import" -s o -l output -d 'Save the profile to F, which must not be there yet' -r -F
complete -c planish -n "__fish_planish_using_subcommand import" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand import" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand import" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand import" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand import" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand import" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand import" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand import" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand export" -s o -l output -d 'Save the files below DIR, where none of them may be yet, unless it says the same' -r -F
complete -c planish -n "__fish_planish_using_subcommand export" -l allow -d 'Allow steps of these classes besides safe ones: availability, durability' -r
complete -c planish -n "__fish_planish_using_subcommand export" -l allow-knob -d 'Allow the steps of this knob, whatever its class' -r
complete -c planish -n "__fish_planish_using_subcommand export" -l service -d 'Size pools for this service: a process id or a name' -r
complete -c planish -n "__fish_planish_using_subcommand export" -l exclude -d 'Leave this knob as it is; or leave its places to another program that writes them, such as tuned' -r
complete -c planish -n "__fish_planish_using_subcommand export" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand export" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand export" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand export" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand export" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand export" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand export" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand export" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand size" -l bytes -d 'So many bytes, such as 24G' -r
complete -c planish -n "__fish_planish_using_subcommand size" -l regions -d 'N regions of BYTES each: every region is rounded up to whole pages' -r
complete -c planish -n "__fish_planish_using_subcommand size" -l postgres -d 'What the PostgreSQL server with this data folder would ask for; it need not run' -r -F
complete -c planish -n "__fish_planish_using_subcommand size" -l postgres-program -d 'The PostgreSQL server program; found by the version in the folder without this' -r -F
complete -c planish -n "__fish_planish_using_subcommand size" -l headroom -d 'Add this much to what is needed' -r
complete -c planish -n "__fish_planish_using_subcommand size" -s o -l output -d 'Save a profile that wants the pool of --bytes, --regions or --postgres, for `planish plan FILE`' -r -F
complete -c planish -n "__fish_planish_using_subcommand size" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand size" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand size" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand size" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand size" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand size" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand size" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand size" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand size" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand map" -l postgres -d 'Ask the PostgreSQL server behind this connection string what its shared memory holds, and lay it over the map of all its processes' -r
complete -c planish -n "__fish_planish_using_subcommand map" -l html -d 'Also draw the address space into this HTML file' -r -F
complete -c planish -n "__fish_planish_using_subcommand map" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand map" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand map" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand map" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand map" -l tree -d 'All processes that descend from it too; what they share counts once'
complete -c planish -n "__fish_planish_using_subcommand map" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand map" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand map" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand map" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand map" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand move" -l to -d 'Move memory to this node; several get equal shares, in pieces of a huge page' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l from -d 'Only memory that lies on these nodes now' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l only -d 'Only memory of this kind: heap, anon, stack; separated by commas' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l cpus -d 'Pin every thread to these CPUs' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l rate -d 'Move at most so much in a second, in MB; an undo goes no faster' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l reason -d 'Why, for the journal' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand move" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand move" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand move" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand move" -l tree -d 'All processes that descend from them too'
complete -c planish -n "__fish_planish_using_subcommand move" -l threads -d 'Pin every thread to the CPUs of the nodes of --to'
complete -c planish -n "__fish_planish_using_subcommand move" -l against-policy -d 'Also memory whose policy says otherwise (bind, interleave)'
complete -c planish -n "__fish_planish_using_subcommand move" -l locked -d 'Also memory that a program has locked: it waits for a moment for each page'
complete -c planish -n "__fish_planish_using_subcommand move" -l dry-run -d 'Look and tell what would be moved; move nothing'
complete -c planish -n "__fish_planish_using_subcommand move" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand move" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand move" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand move" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand move" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand topo" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand topo" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand topo" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand topo" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand topo" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand topo" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand topo" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand topo" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand topo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand latency" -l cpus -d 'Measure these CPUs only, such as 0-3,8; isolated ones may be named' -r
complete -c planish -n "__fish_planish_using_subcommand latency" -l rounds -d 'Rounds of each figure; more of them make intervals shorter' -r
complete -c planish -n "__fish_planish_using_subcommand latency" -l html -d 'Also draw it into this HTML file, which needs nothing else' -r -F
complete -c planish -n "__fish_planish_using_subcommand latency" -l seconds -d 'With --jitter: time for everything, of which half is spun and half slept' -r
complete -c planish -n "__fish_planish_using_subcommand latency" -l threshold -d 'With --jitter: nanoseconds from which on a gap counts as one' -r
complete -c planish -n "__fish_planish_using_subcommand latency" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand latency" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand latency" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand latency" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand latency" -l jitter -d 'Measure instead how much of each CPU\'s time a thread of its own does not get'
complete -c planish -n "__fish_planish_using_subcommand latency" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand latency" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand latency" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand latency" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand latency" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand run" -l numa -d 'Where memory goes: [shm=|heap=]local|interleave|weighted|bind:NODES|prefer:NODES, separated by commas. A policy alone is about shared segments; interleave and weighted take NODES too' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l huge -d 'On which pages: heap, heap=hugetlb, shm, shm=hugetlb, shm=2m, shm=1g, separated by commas. Without a word transparent huge pages, which nothing has to be reserved for' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l cpus -d 'Run on these CPUs only, such as 0-3,8' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l node -d 'Run on the CPUs of these nodes, and take all memory from them' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l malloc -d 'Another allocator, where the system has it: jemalloc, tcmalloc, mimalloc' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l thp -d 'never: without transparent huge pages, with all that it starts' -r -f -a "never\t''"
complete -c planish -n "__fish_planish_using_subcommand run" -l memlock -d 'It may lock so much memory: bytes (64M, 2G) or unlimited' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l prefault-threads -d 'Fill shared segments by so many threads; without it by one for each CPU, at most 16' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l min -d 'Leave shared segments alone that are shorter than this' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l verify-after -d 'Look at its memory after so long; without it when its segments are placed, or after two seconds' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l report -d 'Also write what was achieved to F, as JSON' -r -F
complete -c planish -n "__fish_planish_using_subcommand run" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand run" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand run" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand run" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand run" -l each-node -d 'Start one instance for each node that has CPUs, each as with --node; {node} in an argument is its number, as is PLANISH_NODE in its environment'
complete -c planish -n "__fish_planish_using_subcommand run" -l no-prefault -d 'Do not fill shared segments before their first use'
complete -c planish -n "__fish_planish_using_subcommand run" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand run" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand run" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand run" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -f -a "record" -d 'Copy exactly the files that planish reads, without serial numbers, addresses and names'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -f -a "diff" -d 'Tell in which facts, knobs and settings of the next boot two machines differ'
complete -c planish -n "__fish_planish_using_subcommand host; and not __fish_seen_subcommand_from record diff help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l note -d 'What the machine is, in a sentence' -r
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "record" -d 'Copy exactly the files that planish reads, without serial numbers, addresses and names'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Tell in which facts, knobs and settings of the next boot two machines differ'
complete -c planish -n "__fish_planish_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand diff" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand diff" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand diff" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand diff" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand diff" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand diff" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand diff" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand diff" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'Put `planish check --monitor` on a timer of systemd'
complete -c planish -n "__fish_planish_using_subcommand install; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l every -d 'When: a calendar event of systemd, such as hourly, *:0/15 or Mon..Fri 02:30' -r
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l program -d 'Start this program; without it, the one that runs (with --root: /usr/bin/planish)' -r
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l yes -d 'Write without asking'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from help" -f -a "check" -d 'Put `planish check --monitor` on a timer of systemd'
complete -c planish -n "__fish_planish_using_subcommand install; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "record" -d 'Record samples of running code and turn them into a call profile of one program'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "import" -d 'Turn samples of any source into a call profile of one program'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "merge" -d 'Make one call profile of many: hosts weighed alike, old ones faded, builds matched by name'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "show" -d 'Show a call profile: hot functions, who calls them, and the pages that they lie on'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "order" -d 'Order a program\'s functions by what runs: tries every order, keeps the best that is worth a change'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "link-flags" -d 'Print the flags by which a build follows an order, as lines of the tool that builds'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "cc" -d 'Run a compiler so that what it links follows an order, and fits huge pages'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "ld" -d 'Run a linker so that what it links follows an order, and fits huge pages'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "check" -d 'Tell what a program allows (huge pages, an order, stacks) and the flag that would mend each'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "verify" -d 'Verify a layout: samples inside of the hot range, pages that hold them, and what lies on huge pages'
complete -c planish -n "__fish_planish_using_subcommand text; and not __fish_seen_subcommand_from record import merge show order link-flags cc ld check verify help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l pid -d 'Record this process: all its threads, and the children that it starts from now on' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l cgroup -d 'Record the processes of this control group: its folder, or its path below the mount' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l unit -d 'Record the processes of this systemd unit' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l program -d 'The program to make a profile of; without it, the one with most samples' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l seconds -d 'Record for so long; without it, until the command or process ends, or Ctrl-C' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l rate -d 'Samples a second on each CPU' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l duty -d 'Sample this share of the time, in turns of about a second; mappings are followed all the time' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l event -d 'What to sample by; without it, the best that this machine has' -r -f -a "branches\t''
cycles\t''
cpu-clock\t''
flat\t''"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l raw -d 'Also keep the samples in F, for `perf script -i F` and `planish text import F`' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -s o -l output -d 'Write the profile to F' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l report -d 'Also write the JSON object of --json to F: with a command, stdout is the command\'s' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -s a -l all -d 'Record everything that runs on this machine'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l program -d 'The program that was sampled; without it, the one that perf.data has most samples of' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l format -d 'The format; found by looking without this' -r -f -a "planish\t''
perf-data\t''
perf-script\t''
folded\t''
pprof\t''
fdata\t''
autofdo\t''
callgrind\t''
hfsort\t''"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l event -d 'The event to take, where there are several' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l host -d 'The host that it was recorded on, where the file does not say' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l duty -d 'The share of time that was recorded, where the recorder ran now and then' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -s o -l output -d 'Write to F instead of stdout' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l half-life -d 'After so many days a profile counts half' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l host-cap -d 'The most that one host may count, in percent' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -s o -l output -d 'Write to F instead of stdout' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from merge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l program -d 'The program; without it, the file that was sampled if it is still the same build' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l top -d 'Show so many functions' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l profile -d 'A call profile of it, of this build or an earlier one' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l previous -d 'The order that it was linked by last, one symbol a line: near ties keep it' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l algorithm -d 'Take this order and no other' -r -f -a "keep\t''
weight\t''
density\t''
c3\t''
cdsort\t''"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l form -d 'What to write: for lld and rustc symbols or call-graph, for gold and GNU ld sections, for BOLT functions' -r -f -a "symbols\t''
call-graph\t''
gold\t''
gnu-ld\t''
linker-script\t''
bolt\t''"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l margin -d 'An order must save this much of the cycles of fetching to replace the one that is there, in percent' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -s o -l output -d 'Write to F instead of stdout' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from order" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l compiler -d 'What compiles' -r -f -a "gcc\t''
clang\t''
rustc\t''"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l linker -d 'What links; rustc\'s own is lld' -r -f -a "lld\t''
gold\t''
bfd\t'GNU ld; takes an order from 2.43 on'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l order -d 'The order, in the form for that linker: planish text order --form' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l huge -d 'Make text that can lie on huge pages of SIZE' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l for -d 'Print lines for this tool' -r -f -a "make\t''
cmake\t''
cargo\t''
meson\t''
bazel\t''
buck2\t''
dockerfile\t''"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l frame-pointers -d 'Keep frame pointers, for stacks that cost nothing to walk'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l bolt -d 'Keep relocations for BOLT'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from link-flags" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l order -d 'Lay functions in the order of F: a symbol a line, as `planish text order` writes it' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l profile -d 'Lay functions in an order made of this call profile (CDSort); `planish text order` picks the best of several' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l huge -d 'Make text that can lie on huge pages of SIZE, or leave its alignment alone: no. Without it 2M with an order' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l only -d 'Only where a file of this name is linked, or of this name with the hash of cargo; may be given several times' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l link-only -d 'Leave compilations alone, which get -ffunction-sections otherwise'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l strict -d 'Fail where the order cannot be used, instead of linking without it'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l time -d 'Link twice, without and with the order, and tell the CPU time of both on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from cc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l order -d 'Lay functions in the order of F: a symbol a line, as `planish text order` writes it' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l profile -d 'Lay functions in an order made of this call profile (CDSort); `planish text order` picks the best of several' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l huge -d 'Make text that can lie on huge pages of SIZE, or leave its alignment alone: no. Without it 2M with an order' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l only -d 'Only where a file of this name is linked, or of this name with the hash of cargo; may be given several times' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l link-only -d 'Leave compilations alone, which get -ffunction-sections otherwise'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l strict -d 'Fail where the order cannot be used, instead of linking without it'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l time -d 'Link twice, without and with the order, and tell the CPU time of both on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from ld" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l page -d 'Check for huge pages of SIZE; without it, for those of this kernel' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l profile -d 'A call profile of it' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l inside -d 'Samples that must lie inside of the hot range, in percent' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l huge -d 'Hot bytes of a process that must lie on huge pages, in percent' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "record" -d 'Record samples of running code and turn them into a call profile of one program'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "import" -d 'Turn samples of any source into a call profile of one program'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "merge" -d 'Make one call profile of many: hosts weighed alike, old ones faded, builds matched by name'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a call profile: hot functions, who calls them, and the pages that they lie on'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "order" -d 'Order a program\'s functions by what runs: tries every order, keeps the best that is worth a change'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "link-flags" -d 'Print the flags by which a build follows an order, as lines of the tool that builds'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "cc" -d 'Run a compiler so that what it links follows an order, and fits huge pages'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "ld" -d 'Run a linker so that what it links follows an order, and fits huge pages'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "check" -d 'Tell what a program allows (huge pages, an order, stacks) and the flag that would mend each'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Verify a layout: samples inside of the hot range, pages that hold them, and what lies on huge pages'
complete -c planish -n "__fish_planish_using_subcommand text; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "new" -d 'Write a first trial file for a command of yours'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "run" -d 'Run a trial: randomised pairs, intervals, a hidden placebo'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "status" -d 'Tell how far a trial is whose arms are boots; without one, what the last one found'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "stop" -d 'End a trial whose arms are boots, and take its unit, its boot entry and its state away'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "resume" -d 'Go on with a trial whose arms are boots: what its unit does after each boot'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "selfcheck" -d 'Tell the noise of this machine under a trial: sigma, the gain that the budget can see, the hours needed'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "honesty" -d 'Tell how often the hidden placebo was kept, over all trials whose proofs are here'
complete -c planish -n "__fish_planish_using_subcommand trial; and not __fish_seen_subcommand_from new run status stop resume selfcheck honesty help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l cmd -d 'The command to measure, as one line of a shell' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l profile -d 'The profile whose worth is asked for; with a slash, a profile in a file that ends in .toml, whose wanted values the trial file then holds itself' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -s o -l output -d 'Write to F, which must not be there yet, instead of stdout' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from new" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l allow -d 'Where arms are boots: allow to start the machine anew (reboot), and boot parameters of these classes besides safe ones: availability, durability' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l allow-knob -d 'Where arms are boots: allow this boot parameter, whatever its class' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l seed -d 'Draw everything from this seed, to run the same again' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l budget -d 'Time for everything' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l html -d 'Also write the report as one HTML page' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l keep -d 'Persist what is kept and confirmed, in sysctl.d and tmpfiles.d; boot parameters only where arms are boots'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l duet -d 'Run the two arms of a pair at the same time, each on its half of the CPUs'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l quick -d 'The short form: 90 seconds, nothing confirmed; that it cannot tell is a normal answer'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l seed -d 'Draw everything from this seed, to run the same again' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l budget -d 'Time for everything' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l html -d 'Also write the report as one HTML page' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l duet -d 'Run the two arms of a pair at the same time, each on its half of the CPUs'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l quick -d 'The short form: 90 seconds, nothing confirmed; that it cannot tell is a normal answer'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from selfcheck" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from honesty" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "new" -d 'Write a first trial file for a command of yours'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run a trial: randomised pairs, intervals, a hidden placebo'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "status" -d 'Tell how far a trial is whose arms are boots; without one, what the last one found'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "stop" -d 'End a trial whose arms are boots, and take its unit, its boot entry and its state away'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "resume" -d 'Go on with a trial whose arms are boots: what its unit does after each boot'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "selfcheck" -d 'Tell the noise of this machine under a trial: sigma, the gain that the budget can see, the hours needed'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "honesty" -d 'Tell how often the hidden placebo was kept, over all trials whose proofs are here'
complete -c planish -n "__fish_planish_using_subcommand trial; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l seed -d 'Draw everything from this seed, to run the same again' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l budget -d 'Time for everything' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l html -d 'Also write the report as one HTML page' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l quick -d 'The short form: 90 seconds, nothing confirmed; that it cannot tell is a normal answer'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -f -a "series" -d 'Time-series queries of the embedded engine on 4 KB, transparent, 2 MB and 1 GB pages (the default)'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -f -a "postgres" -d 'PostgreSQL on 4 KB, transparent, 2 MB and 1 GB pages, on clusters of its own'
complete -c planish -n "__fish_planish_using_subcommand prove; and not __fish_seen_subcommand_from series postgres help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l seed -d 'Draw everything from this seed, to run the same again' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l budget -d 'Time for everything' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l html -d 'Also write the report as one HTML page' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l quick -d 'The short form: 90 seconds, nothing confirmed; that it cannot tell is a normal answer'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from series" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l scale -d 'Rows in units of 100,000; without this as many as memory allows' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l shared-buffers -d 'Shared buffers of each server; without this a tenth more than the data' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l clients -d 'Clients of each server' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l workload -d 'A pgbench script instead of lookups; it may only read' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l bin -d 'The folder of the programs postgres and initdb' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l conn -d 'Only read this existing cluster, and propose the lines for its postgresql.conf' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l seed -d 'Draw everything from this seed, to run the same again' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l budget -d 'Time for everything' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l html -d 'Also write the report as one HTML page' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l quick -d 'The short form: 90 seconds, nothing confirmed; that it cannot tell is a normal answer'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from postgres" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from help" -f -a "series" -d 'Time-series queries of the embedded engine on 4 KB, transparent, 2 MB and 1 GB pages (the default)'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from help" -f -a "postgres" -d 'PostgreSQL on 4 KB, transparent, 2 MB and 1 GB pages, on clusters of its own'
complete -c planish -n "__fish_planish_using_subcommand prove; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -f -a "series" -d 'Run time-series queries over ticks in an arena'
complete -c planish -n "__fish_planish_using_subcommand workload; and not __fish_seen_subcommand_from series help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l bytes -d 'Working set' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l queries -d 'Queries of a round: xbar, ema, window, asof, vwap, lookup; all of them without this' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l pages -d 'Pages under the working set: 4k, thp, or a reserved size such as 2m or 1g' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l fallback -d 'Whether smaller pages will do when these cannot be had' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l cpu -d 'Pin the threads to these CPUs' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l node -d 'Put the working set on this NUMA node' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l threads -d 'Threads that each run whole rounds' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l seed -d 'Decides the data and the queries' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l warm-up -d 'Run untimed for so long first' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l seconds -d 'Run timed for so long' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l rounds -d 'Run this many rounds instead of for a time' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l serve -d 'Stay, and run one slice for each line `slice MILLIS SEED` of standard input, until `quit`'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from series" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from help" -f -a "series" -d 'Run time-series queries over ticks in an arena'
complete -c planish -n "__fish_planish_using_subcommand workload; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand version" -l root -d 'Take the recorded host in DIR for this machine; what is set is set in its files' -r -F
complete -c planish -n "__fish_planish_using_subcommand version" -l state -d 'Keep journal and proofs in DIR/var, read own profiles and knobs from DIR/etc/profiles and DIR/etc/knobs' -r -F
complete -c planish -n "__fish_planish_using_subcommand version" -l color -d 'Use colour: on terminals, always or never' -r -f -a "auto\t'Where the stream is a terminal'
always\t'Everywhere'
never\t'Nowhere'"
complete -c planish -n "__fish_planish_using_subcommand version" -l clock -d 'Take this as the present time, in seconds since 1970: for tests on recorded hosts' -r
complete -c planish -n "__fish_planish_using_subcommand version" -l json -d 'Print one JSON object instead of text'
complete -c planish -n "__fish_planish_using_subcommand version" -s q -l quiet -d 'Print data and errors only'
complete -c planish -n "__fish_planish_using_subcommand version" -s v -l verbose -d 'Print every place, source and calculation'
complete -c planish -n "__fish_planish_using_subcommand version" -l timings -d 'Print each stage and how long it took, on stderr'
complete -c planish -n "__fish_planish_using_subcommand version" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "doctor" -d 'Tell what this machine loses, why, and the cure'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "plan" -d 'Show before and after of every step, and what it may cost'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "apply" -d 'Write a plan to the host, read every value back, and keep what it takes to undo it'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "confirm" -d 'Keep what `apply --confirm` wrote, before its time runs out'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "check" -d 'Compare the host with a profile, a plan, or what was applied'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "undo" -d 'Put the host back as it was before an apply'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "watch-confirm" -d 'Undo an entry at its deadline unless it is confirmed before'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "hold" -d 'Hold a limit of the kernel until this process is ended'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "log" -d 'List what was done to this host, newest first'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "knobs" -d 'List every setting that planish knows, and what it means on this host'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "import" -d 'Read the settings of another tool as a profile'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "export" -d 'Write a profile or a plan for another tool'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "size" -d 'Compute how many huge pages a service needs on each node, and show the arithmetic'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "map" -d 'Show where the memory of a process lies: what it is for, on which pages, on which node'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "move" -d 'Move memory and threads of running processes to other nodes and CPUs'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "topo" -d 'Show CPUs, caches, NUMA nodes and where devices are attached'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "latency" -d 'Measure how far CPUs are from each other and from memory, and what pages of each size cost'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "run" -d 'Start a program as it is, with its memory where it belongs'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "host" -d 'Record this machine in a folder, or compare two recorded ones'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "diff" -d 'Tell in which facts, knobs and settings of the next boot two machines differ'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "install" -d 'Have systemd do something of planish again and again'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "text" -d 'Lay out a program\'s code by what runs: hot functions together'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "trial" -d 'Measure on your own workload which changes pay'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "prove" -d 'Prove on this machine what page sizes and placement are worth'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "workload" -d 'Run an embedded workload: what the arms of `planish prove` are made of'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "version" -d 'Print the version, the architecture and how the binary is linked'
complete -c planish -n "__fish_planish_using_subcommand help; and not __fish_seen_subcommand_from doctor plan apply confirm check undo watch-confirm hold log knobs import export size map move topo latency run host diff install text trial prove workload version help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from hold" -f -a "cpu-dma-latency" -d 'The longest wake-up of any CPU'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "record" -d 'Copy exactly the files that planish reads, without serial numbers, addresses and names'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "diff" -d 'Tell in which facts, knobs and settings of the next boot two machines differ'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from install" -f -a "check" -d 'Put `planish check --monitor` on a timer of systemd'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "record" -d 'Record samples of running code and turn them into a call profile of one program'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "import" -d 'Turn samples of any source into a call profile of one program'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "merge" -d 'Make one call profile of many: hosts weighed alike, old ones faded, builds matched by name'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "show" -d 'Show a call profile: hot functions, who calls them, and the pages that they lie on'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "order" -d 'Order a program\'s functions by what runs: tries every order, keeps the best that is worth a change'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "link-flags" -d 'Print the flags by which a build follows an order, as lines of the tool that builds'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "cc" -d 'Run a compiler so that what it links follows an order, and fits huge pages'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "ld" -d 'Run a linker so that what it links follows an order, and fits huge pages'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "check" -d 'Tell what a program allows (huge pages, an order, stacks) and the flag that would mend each'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from text" -f -a "verify" -d 'Verify a layout: samples inside of the hot range, pages that hold them, and what lies on huge pages'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "new" -d 'Write a first trial file for a command of yours'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "run" -d 'Run a trial: randomised pairs, intervals, a hidden placebo'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "status" -d 'Tell how far a trial is whose arms are boots; without one, what the last one found'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "stop" -d 'End a trial whose arms are boots, and take its unit, its boot entry and its state away'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "resume" -d 'Go on with a trial whose arms are boots: what its unit does after each boot'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "selfcheck" -d 'Tell the noise of this machine under a trial: sigma, the gain that the budget can see, the hours needed'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from trial" -f -a "honesty" -d 'Tell how often the hidden placebo was kept, over all trials whose proofs are here'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from prove" -f -a "series" -d 'Time-series queries of the embedded engine on 4 KB, transparent, 2 MB and 1 GB pages (the default)'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from prove" -f -a "postgres" -d 'PostgreSQL on 4 KB, transparent, 2 MB and 1 GB pages, on clusters of its own'
complete -c planish -n "__fish_planish_using_subcommand help; and __fish_seen_subcommand_from workload" -f -a "series" -d 'Run time-series queries over ticks in an arena'

# fish completion for rubato: the program says what fits (rubato complete WORD...).
function __rubato_fits
    set -l typed (commandline -opc) (commandline -ct)
    for line in ($typed[1] complete $typed[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c rubato -f -a '(__rubato_fits)'

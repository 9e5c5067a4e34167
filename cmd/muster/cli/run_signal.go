package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
)

// mostSignalSeconds bounds the time between a signal and the end, as Slurm does.
const mostSignalSeconds = 65535

// signalOf reads the value of --signal as Slurm has it: SIGNAL[@SECONDS], where SIGNAL is
// a number or a name. Each member has one process group, so there is no B: or R: of Slurm.
func signalOf(text string) (signal, before string, err error) {
	name, seconds, timed := strings.Cut(text, "@")
	number, err := strconv.Atoi(name)
	if err != nil {
		number = 0
	}
	signal, known := api.SignalName(name, number)
	if !known {
		return "", "", fmt.Errorf("%q is not a signal that can announce an end: want e.g. USR1, TERM or 10", name)
	}
	if !timed {
		return signal, "", nil
	}
	n, err := strconv.Atoi(seconds)
	if err != nil || n < 1 || n > mostSignalSeconds {
		return "", "", errors.New("want the seconds before the end after @, from 1 to " + strconv.Itoa(mostSignalSeconds))
	}
	return signal, strconv.Itoa(n) + "s", nil
}

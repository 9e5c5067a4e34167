package netlimit

import (
	"math"
	"syscall"
)

// least is the smallest budget of a listener: below it a cluster cannot work.
const least = 64

// Budget is the number of connections of one of a process's listeners: most,
// or a quarter of the process's file descriptors where that is less. Two
// listeners then leave half of the descriptors to files, the store and outgoing
// connections, and neither takes the other's. The Go runtime raises the soft
// limit of descriptors to the hard one at the start of a program.
func Budget(most int) int {
	return max(least, min(most, descriptors()/4))
}

// descriptors is the limit of open files of this process.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // the usual soft limit
	}
	return int(min(limit.Cur, math.MaxInt32))
}

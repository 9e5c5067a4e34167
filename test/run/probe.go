package main

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// reference is how many units of work a second of CPU time does on the machine
// whose figures are in test/report/costs.txt (Xeon, 2 cores).
const reference = 4000.0

// quietShare is the part of all cores that a probe gets on a quiet machine.
const quietShare = 0.85

// measured is what a probe found.
type measured struct {
	share float64 // of the cores' time that the probe got
	speed float64 // how much longer this machine computes than the reference; at least 1
}

func (m measured) quiet() bool { return m.share >= quietShare }

// probe keeps every core busy for a moment. Its own CPU time says how busy the
// machine is, also in a container whose /proc shows the whole host.
func probe() measured {
	const length = 150 * time.Millisecond
	var mu sync.Mutex
	var cpu time.Duration
	units := 0
	var done sync.WaitGroup
	began := time.Now()
	for range cores() {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			n, before := 0, threadCPU()
			for numbers := make([]int, 4096); time.Since(began) < length; n++ {
				unit(numbers)
			}
			mu.Lock()
			defer mu.Unlock()
			cpu += threadCPU() - before
			units += n
		})
	}
	done.Wait()
	wall := time.Since(began)
	return measured{
		share: cpu.Seconds() / (wall.Seconds() * float64(cores())),
		speed: max(1, reference*cpu.Seconds()/float64(max(units, 1))),
	}
}

// unit is a fixed amount of work: a sort of the same numbers.
func unit(numbers []int) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range numbers {
		numbers[i] = random.Int()
	}
	slices.Sort(numbers)
}

// threadCPU returns the CPU time of the calling thread.
func threadCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0 // a bad pointer is the only error
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

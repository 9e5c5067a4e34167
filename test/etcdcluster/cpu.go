package etcdcluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of the kernel's accounts of processes (proc(5), USER_HZ).
const tick = 10 * time.Millisecond

// CPU is the processor time that the members which run now have taken.
func (c *Cluster) CPU() (all time.Duration) {
	c.t.Helper()
	for _, m := range c.members {
		if m.cmd == nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
		if err != nil {
			c.t.Fatal(err)
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, f := range fields[11:13] { // utime and stime
			n, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			all += time.Duration(n) * tick
		}
	}
	return all
}

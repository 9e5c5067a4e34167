// Package philly plays the jobs of Microsoft's Philly clusters to a leader alone
// (cmd/muster/alone), in virtual time: each job arrives, waits, runs for its duration and
// ends. It measures the leader and judges no schedule.
//
// The trace is no part of this repository (Read says where a copy is looked for). It
// has 82,247 jobs of 1 to 128 GPUs over 109 days: "Analysis of Large-Scale
// Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019.
package philly

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Job is one job of the trace. Its arrival counts from the trace's beginning.
type Job struct {
	Arrival, Duration time.Duration
	GPUs              int
	Tenant            string
}

// Read reads a trace: a header, and lines of the arrival and the duration in
// seconds, the number of GPUs, and the tenant, ascending by arrival.
func Read(path string) ([]Job, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	jobs := make([]Job, 0, len(lines))
	for i, line := range lines[min(1, len(lines)):] {
		var numbers [3]int
		for column := range numbers {
			if numbers[column], err = strconv.Atoi(line[column]); err != nil {
				return nil, fmt.Errorf("%s: job %d, column %d: %w", path, i+1, column+1, err)
			}
		}
		jobs = append(jobs, Job{time.Duration(numbers[0]) * time.Second, time.Duration(numbers[1]) * time.Second, numbers[2], line[3]})
	}
	return jobs, nil
}

// members is how many equal members a job is given, and the GPUs of each: as few as
// hosts of 8 GPUs allow. A job of 12 has two of 6.
func (j Job) members() (count, gpus int) {
	const host = 8
	for count = max(1, (j.GPUs+host-1)/host); j.GPUs%count != 0; count++ {
	}
	return count, j.GPUs / count
}

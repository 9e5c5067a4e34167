package run_test

import (
	"context"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
)

// noted has a script wait until its shim has written down the process.
const noted = `while ! test -e "$MUSTER_RUN/started"; do sleep 0.01; done; `

// busy is a script that takes processor time in a child that ends, and then in a child
// that goes on.
const busy = noted + `sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done'; (i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; : > B1; sleep 3600) & wait`

// TestTheUseOfAMemberIsAddedUp: children that have ended count, a restart of the runner
// loses nothing, and the end has no less than was measured before.
func TestTheUseOfAMemberIsAddedUp(t *testing.T) {
	for name, end := range map[string]func(h *host){
		"the work is stopped":      func(h *host) { h.runner.Stop("a", time.Now()) },
		"the supervisor is killed": func(h *host) { p, _ := h.folder(0).Begun(); _ = syscall.Kill(p.PID, syscall.SIGKILL) },
		"the work ends without agent": func(h *host) {
			h.leave()
			c, _ := h.folder(0).Started()
			_ = syscall.Kill(-c.PID, syscall.SIGKILL)
			h.start()
		},
		"the runner is another at end": func(h *host) { h.leave(); h.start(); h.until(grant.WorkRunning); h.runner.Stop("a", time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start()
			reached, wait := h.barrier()
			h.runner.Attach("a", []run.Member{h.shell(0, strings.Replace(busy, "B1", reached, 1))})
			wait()
			h.until(grant.WorkRunning)
			if use := h.runner.States("a")[0].Use; use != nil {
				t.Errorf("use %+v before the first sample", use)
			}
			h.runner.Measure(t.Context(), time.Now())
			first := h.runner.States("a")[0].Use
			if first == nil || first.CPU < 20*time.Millisecond || first.CPU > time.Minute || first.Memory < 1<<19 || first.PeakMemory < first.Memory {
				t.Fatalf("use %+v, want the time of both children, and their memory", first)
			}
			end(h)
			last := h.until(grant.WorkEnded)[0].Use
			if last == nil || last.CPU < first.CPU || last.PeakMemory < first.PeakMemory || last.Memory != 0 {
				t.Errorf("use %+v at the end, want no less than %+v, and no memory", last, first)
			}
		})
	}
}

// TestTheUseOfDevicesIsThatOfTheMember: a device that others use too counts for nobody.
func TestTheUseOfDevicesIsThatOfTheMember(t *testing.T) {
	whole := devices.Use{UUID: "GPU-a", Percent: 60, Memory: 5 << 30}
	all := grant.DeviceUse{UUID: "GPU-a", Busy: 6 * time.Second, Measured: 10 * time.Second, Memory: 5 << 30, PeakMemory: 5 << 30}
	for name, c := range map[string]struct {
		others  []int
		own     bool // the member's process is on the device
		sharers int
		use     devices.Use
		want    grant.DeviceUse
	}{
		"alone, and the driver reports no processes":       {use: whole, sharers: 1, want: all},
		"alone among the processes":                        {use: whole, own: true, sharers: 1, want: all},
		"the only user of a device that two members share": {use: whole, own: true, sharers: 2, want: all},
		"beside others": {use: whole, others: []int{1}, own: true, sharers: 2, want: grant.DeviceUse{UUID: "GPU-a"}},
		"only others":   {use: whole, others: []int{1}, sharers: 1, want: grant.DeviceUse{UUID: "GPU-a"}},
		"one of two, and the driver reports no processes": {use: whole, sharers: 2, want: grant.DeviceUse{UUID: "GPU-a"}},
		"no use, which is measured too": {
			use: devices.Use{UUID: "GPU-a", Memory: devices.UnknownUse}, sharers: 1, want: grant.DeviceUse{UUID: "GPU-a", Measured: 10 * time.Second},
		},
		"values that are not known are 0":                    {use: devices.Use{UUID: "GPU-a", Percent: devices.UnknownUse, Memory: devices.UnknownUse}, want: grant.DeviceUse{UUID: "GPU-a"}},
		"a device of the host that the member does not have": {use: devices.Use{UUID: "GPU-b", Percent: 100, Memory: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			present := map[string]run.DeviceNow{}
			h.devices = func(context.Context) map[string]run.DeviceNow { return present }
			h.start()
			reached, wait := h.barrier()
			m := h.shell(0, noted+": > "+reached+"; sleep 3600")
			m.Spec.Devices = []string{"GPU-a"}
			h.runner.Attach("a", []run.Member{m})
			wait()
			h.until(grant.WorkRunning)
			now := run.DeviceNow{Use: c.use, PIDs: c.others, Sharers: c.sharers}
			if c.own {
				p, err := h.folder(0).Started()
				if err != nil {
					t.Fatal(err)
				}
				now.PIDs = append(now.PIDs, p.PID)
			}
			present[c.use.UUID] = now
			at := time.Now()
			h.runner.Measure(t.Context(), at)
			h.runner.Measure(t.Context(), at.Add(10*time.Second))
			use := h.runner.States("a")[0].Use
			if use == nil {
				t.Fatal("nothing is measured")
			}
			if c.want.UUID == "" {
				if len(use.Devices) > 0 {
					t.Errorf("devices %+v, want none", use.Devices)
				}
				return
			}
			if len(use.Devices) != 1 || use.Devices[0] != c.want {
				t.Errorf("devices %+v, want %+v", use.Devices, c.want)
			}
		})
	}
}

// TestAGapOfSamplesCountsForAShortTime: nobody knows the use during a long gap.
func TestAGapOfSamplesCountsForAShortTime(t *testing.T) {
	h := newHost(t)
	h.devices = func(context.Context) map[string]run.DeviceNow {
		return map[string]run.DeviceNow{"GPU-a": {Use: devices.Use{UUID: "GPU-a", Percent: 100}}}
	}
	h.start()
	reached, wait := h.barrier()
	m := h.shell(0, noted+": > "+reached+"; sleep 3600")
	m.Spec.Devices = []string{"GPU-a"}
	h.runner.Attach("a", []run.Member{m})
	wait()
	h.until(grant.WorkRunning)
	at := time.Now()
	for _, after := range []time.Duration{0, time.Hour, time.Hour - time.Minute} { // a clock may go back too
		h.runner.Measure(t.Context(), at.Add(after))
	}
	if got := h.runner.States("a")[0].Use.Devices[0]; got.Busy != 30*time.Second || got.Measured != got.Busy {
		t.Errorf("busy %s of %s, want 30s of 30s for a gap of an hour", got.Busy, got.Measured)
	}
}

// TestASlowDriverDelaysNeitherAStartNorAnEnd: and a measurement that comes after the end
// changes nothing.
func TestASlowDriverDelaysNeitherAStartNorAnEnd(t *testing.T) {
	h := newHost(t)
	asked, answer, answered := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 8)
	h.measureEvery = time.Millisecond
	h.devices = func(ctx context.Context) map[string]run.DeviceNow {
		select {
		case asked <- struct{}{}:
		default:
			<-ctx.Done() // one measurement is enough
		}
		<-answer
		defer func() { answered <- struct{}{} }()
		return map[string]run.DeviceNow{"GPU-a": {Use: devices.Use{UUID: "GPU-a", Percent: 100, Memory: 7 << 30}}}
	}
	h.start()
	reached, wait := h.barrier()
	m := h.shell(0, noted+": > "+reached+"; sleep 3600")
	m.Spec.Devices = []string{"GPU-a"}
	h.runner.Attach("a", []run.Member{m})
	wait()
	h.until(grant.WorkRunning)
	<-asked
	h.runner.Attach("a", []run.Member{h.shell(1, "true")})
	h.runner.Stop("a", time.Now())
	last := h.until(grant.WorkEnded)
	close(answer)
	<-answered
	runner := h.runner
	h.leave() // waits for the measurement
	if now := runner.States("a"); !reflect.DeepEqual(now, last) {
		t.Errorf("the states are %+v after a late measurement, want %+v", now, last)
	}
}

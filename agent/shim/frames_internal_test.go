package shim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestTheBoundsOfFrames: of a payload in both directions, of taken input and of a signal.
func TestTheBoundsOfFrames(t *testing.T) {
	for size, good := range map[int]bool{0: true, 1: true, MaxFrame: true, MaxFrame + 1: false} {
		var wire bytes.Buffer
		if err := WriteFrame(&wire, FrameInput, make([]byte, size)); (err == nil) != good || !good && wire.Len() > 0 {
			t.Errorf("a frame of %d bytes is written: %v, %d bytes", size, err, wire.Len())
		}
		wire.Reset()
		wire.Write([]byte{byte(FrameInput), byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)})
		wire.Write(make([]byte, size))
		if f, err := ReadFrame(&wire); (err == nil) != good || good && len(f.Payload) != size {
			t.Errorf("a frame of %d bytes is read: %d bytes, %v", size, len(f.Payload), err)
		}
	}
	for n, good := range map[uint32]bool{0: true, InputWindow: true, InputWindow + 1: false} {
		if got, err := ParseTaken([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}); (err == nil) != good || good && got != int(n) {
			t.Errorf("%d taken bytes: %d, %v", n, got, err)
		}
	}
	for text, good := range map[string]bool{"\x00": false, "\x01": true, "\x40": true, "\x41": false, "": false, "\x01\x01": false} {
		if _, err := parseSignal([]byte(text)); (err == nil) != good {
			t.Errorf("the signal %q: %v", text, err)
		}
	}
}

// TestTheBoundsOfASpec: of CPUs, nodes and output, each at the bound and beyond.
func TestTheBoundsOfASpec(t *testing.T) {
	for field, good := range map[string]bool{
		`"cpus":[0,1023]`: true, `"cpus":[1024]`: false, `"cpus":[-1]`: false, `"numaNodes":[0,1023]`: true, `"numaNodes":[1024]`: false, `"numaNodes":[-1]`: false,
		`"logBytes":0,"logFiles":0`: true, `"logBytes":-1`: false, `"logFiles":-1`: false, `"cgroup":"/a"`: true, `"cgroup":"a"`: false,
	} {
		s, err := ParseSpec(fmt.Appendf(nil, `{"version":1,"args":["a"],"dir":"/",%s}`, field))
		if (err == nil) != good {
			t.Errorf("%s: %v", field, err)
		}
		if err == nil && (s.logBytes() != DefaultLogBytes || s.logFiles() != DefaultLogFiles) {
			t.Errorf("%s: %d bytes in %d files", field, s.logBytes(), s.logFiles())
		}
	}
	for bytes, good := range map[int]bool{0: true, 1: true, -1: false} {
		if _, err := ParseShare(fmt.Appendf(nil, `{"version":1,"bytes":%d}`, bytes)); (err == nil) != good {
			t.Errorf("a share of %d bytes: %v", bytes, err)
		}
	}
	for devices, good := range map[int]bool{maxDevices: true, maxDevices + 1: false} {
		var list []string
		for i := range devices {
			list = append(list, fmt.Sprintf(`{"uuid":"%05d"}`, i))
		}
		if _, err := ParseUse([]byte(`{"version":1,"devices":[` + strings.Join(list, ",") + `]}`)); (err == nil) != good {
			t.Errorf("a use of %d devices: %v", devices, err)
		}
	}
}

// TestTheUseByBothMeasurements: the greater sums and peaks, and the later memory and devices.
func TestTheUseByBothMeasurements(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		before, next *int64
		want         int64 // -1: not known
	}{
		"not known": {nil, nil, -1}, "by the first": {number(2), nil, 2}, "by the next": {nil, number(3), 3}, "more before": {number(4), number(1), 4}, "more later": {number(1), number(5), 5},
	} {
		sum := Use{CPUMillis: 9, MemoryBytes: 7, PeakMemoryBytes: 8, OOMKills: c.before}.And(Use{CPUMillis: 3, MemoryBytes: 5, PeakMemoryBytes: 6, OOMKills: c.next})
		if sum.CPUMillis != 9 || sum.MemoryBytes != 5 || sum.PeakMemoryBytes != 8 || (sum.OOMKills == nil) != (c.want < 0) || sum.OOMKills != nil && *sum.OOMKills != c.want {
			t.Errorf("%s: %+v, kills %v, want %d", name, sum, sum.OOMKills, c.want)
		}
	}
	f := made(t)
	if _, ok := f.Measured(); ok {
		t.Error("a folder without a measurement has a use")
	}
	if err := f.WriteMeasured(Use{CPUMillis: 5, MemoryBytes: 4}); err != nil {
		t.Fatal(err)
	}
	if u, ok := f.Measured(); !ok || u.CPUMillis != 5 || u.MemoryBytes != 4 {
		t.Errorf("before the end: %+v, %t", u, ok)
	}
	if err := f.write(useFile, Use{Version: version, CPUMillis: 8}); err != nil {
		t.Fatal(err)
	}
	if u, ok := f.Measured(); !ok || u.CPUMillis != 8 || u.MemoryBytes != 0 {
		t.Errorf("after the end: %+v, %t", u, ok)
	}
}

// TestSilentConnections: beyond the bound the oldest silent connection ends, and a connection with a
// request does not count.
func TestSilentConnections(t *testing.T) {
	var s Silent
	var others []net.Conn
	enter := func() (leave func()) {
		mine, other := net.Pipe()
		others = append(others, other)
		return s.Enter(mine)
	}
	ended := func(i int) bool {
		_ = others[i].SetReadDeadline(time.Unix(1, 0))
		_, err := others[i].Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	for range mostSilent {
		enter()
	}
	if ended(0) || len(s.list) != mostSilent {
		t.Errorf("at the bound %d connections are silent, the oldest has ended: %t", len(s.list), ended(0))
	}
	leave := enter()
	if !ended(0) || ended(1) || ended(mostSilent) || len(s.list) != mostSilent {
		t.Errorf("beyond the bound %d connections are silent; ended: the oldest %t, the next %t, the newest %t", len(s.list), ended(0), ended(1), ended(mostSilent))
	}
	leave()
	enter()
	if ended(1) || len(s.list) != mostSilent {
		t.Errorf("beside a connection with a request %d are silent, the oldest has ended: %t", len(s.list), ended(1))
	}
	for i := range others {
		others[i].Close()
	}
}

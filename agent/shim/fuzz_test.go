package shim

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// again checks that what a parser accepts is read as the same value once it is written
// again.
func again[T any](t *testing.T, parse func([]byte) (T, error), data []byte) {
	value, err := parse(data)
	if err != nil {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := parse(text); err != nil || !reflect.DeepEqual(back, value) {
		t.Errorf("%q is read as %+v, and that as %+v: %v", data, value, back, err)
	}
}

// FuzzFolder reads every file of a folder, and a request, from outside bytes.
func FuzzFolder(f *testing.F) {
	spec := Spec{Version: 1, Args: []string{"true"}, Env: []string{"A=b"}, Dir: "/", CPUs: []int{0, 5}, NUMANodes: []int{1}, User: &User{UID: 1, GID: 2}}
	for _, v := range []any{
		spec, Process{1, 17, 42, "boot"}, Exit{1, 137, 9, Killed, "", time.Unix(0, 0).UTC()}, Exit{Version: 1, Reason: Completed}, request{Stop: true, GraceMillis: 5}, request{Signal: 2}, request{Exec: &Exec{Args: []string{"sh"}, TTY: true, Window: Window{24, 80}, Term: "xterm-256color", Input: true}},
		request{Stop: true, Notice: true}, Noticed{1, 10, time.Unix(0, 0).UTC()}, Spec{Version: 1, Args: []string{"true"}, Dir: "/", Notice: &Notice{10, 60_000, 5}},
		Spec{Version: 1, Args: []string{"true"}, Dir: "/root", AnyDir: true, Cgroup: "/sys/fs/cgroup/a", Limits: map[string]string{"memory.max": "5"}},
		Fault{1, "the disk is full"}, request{Exec: &Exec{Attach: true, From: new(int64), Input: true, Window: Window{24, 80}}},
		Spec{Version: 1, Args: []string{"bash"}, Dir: "/", Stdin: true, TTY: true},
		Spec{Version: 1, Args: []string{"sh"}, Dir: "/", Container: &Container{
			Tool: "/usr/bin/crun", Rootfs: "/srv/a", Within: []string{"/srv"}, Mounts: []Mount{{"/dev/a", "/dev/b", []string{"bind"}}}, Hooks: map[string][]Hook{"createContainer": {{Path: "/bin/true"}}},
		}},
		Spec{Version: 1, Container: &Container{Tool: "/usr/bin/crun", Bundle: "/srv/a", Within: []string{"/srv"}, Env: []string{"HOME=/"}, Data: []Data{{"/srv/data", "/mnt", true}}, DataWithin: []string{"/srv"}}},
		Attached{Version: 1, Processes: []Process{{1, 17, 42, "boot"}}, Cgroups: []Group{{"/sys/fs/cgroup/a", 7, "boot"}}, Code: new(int)},
		Use{Version: 1, CPUMillis: 5, OOMKills: new(int64), Devices: []DeviceUse{{UUID: "GPU-a", BusyMillis: 3}}},
	} {
		data, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(`{"version":1,"code":0,"reason":"SupervisorLost","at":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte("1001:1002:44,27"))
	f.Add([]byte(`{"msg":"executable file a not found","level":"error","time":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte("low 0\noom_kill 3\n"))
	f.Add([]byte("17 (a) b) S 1 17 17 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		again(t, ParseSpec, data)
		again(t, ParseProcess, data)
		again(t, ParseExit, data)
		again(t, ParseUse, data)
		again(t, ParseNoticed, data)
		again(t, ParseFault, data)
		again(t, ParseAttached, data)
		if text := toolMessage(data); len(text) > maxToolMessage || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("message %q of %q", text, data)
		}
		if u, err := ParseUser(string(data)); err == nil && u.String() != string(data) {
			t.Errorf("user %q is read as %s", data, u)
		}
		if n, ok := parseNumber(data, "oom_kill"); ok && n < 0 {
			t.Errorf("a number %d", n)
		}
		if _, err := parseRequest(data); err == nil && len(data) > maxRequest {
			t.Error("a request beyond its bound")
		}
		if s, err := parseStat(data); err == nil && s.state == 0 {
			t.Error("a process without a state")
		}
		if e, err := ParseExit(data); err == nil && e.IsSuccess() && (e.Code != 0 || e.Signal != 0) {
			t.Errorf("%+v is a success", e)
		}
	})
}

func TestFilesThatAreNoFilesOfAFolder(t *testing.T) {
	for name, c := range map[string]struct {
		parse func([]byte) error
		text  string
		want  string
	}{
		"a later version":             {specError, `{"version":2,"args":["a"],"dir":"/"}`, "spec: version 2, this program reads version 1"},
		"no command":                  {specError, `{"version":1,"args":[],"dir":"/"}`, "spec: args: no command"},
		"a relative folder":           {specError, `{"version":1,"args":["a"],"dir":"tmp"}`, `spec: dir "tmp": want an absolute path`},
		"a variable without a name":   {specError, `{"version":1,"args":["a"],"dir":"/","env":["=b"]}`, `spec: env "=b": want NAME=VALUE`},
		"no command in a rootfs":      {specError, `{"version":1,"dir":"/","container":{"tool":"/a","rootfs":"/b","within":["/"]}}`, "spec: args: no command"},
		"a rootfs and a bundle":       {specError, `{"version":1,"dir":"/","container":{"tool":"/a","rootfs":"/b","bundle":"/c","within":["/"]}}`, `spec: container.rootfs "/b" and bundle "/c": want one of both`},
		"a mount over all":            {specError, `{"version":1,"container":{"tool":"/a","bundle":"/c","within":["/"],"data":[{"source":"/a","target":"/"}],"dataWithin":["/"]}}`, "spec: container.data[0]: the target /: want a place below it"},
		"a mount without a rule":      {specError, `{"version":1,"container":{"tool":"/a","bundle":"/c","within":["/"],"data":[{"source":"/a","target":"/b"}]}}`, "spec: container.dataWithin: 0 folders, want 1..64"},
		"a CPU beyond the set":        {specError, `{"version":1,"args":["a"],"dir":"/","cpus":[1024]}`, "spec: cpus: 1024 is outside 0..1023"},
		"a zero byte":                 {specError, `{"version":1,"args":["a\u0000"],"dir":"/"}`, "spec: text 0 of args and env has a zero byte"},
		"an unknown end":              {exitError, `{"version":1,"code":1,"reason":"Bored","at":"2026-01-02T03:04:05Z"}`, `exit: reason "Bored" is not known`},
		"a success that nobody saw":   {exitError, `{"version":1,"code":0,"reason":"NodeRestarted","at":"2026-01-02T03:04:05Z"}`, "exit: code 0 with signal 0 and reason NodeRestarted"},
		"a use of a later version":    {useError, `{"version":2}`, "use: version 2, this program reads version 1"},
		"a use below zero":            {useError, `{"version":1,"cpuMillis":-1}`, `use: a value is negative: {"version":1,"cpuMillis":-1}`},
		"devices out of order":        {useError, `{"version":1,"devices":[{"uuid":"b"},{"uuid":"a"}]}`, "use: devices[1]: {UUID:a BusyMillis:0 MeasuredMillis:0 MemoryBytes:0 PeakMemoryBytes:0}: want ascending UUIDs and nothing negative"},
		"both of stop and signal":     {requestError, `{"stop":true,"signal":9}`, "request: want one of stop, signal and exec"},
		"a notice without a time":     {specError, `{"version":1,"args":["a"],"dir":"/","notice":{"signal":10}}`, "spec: notice: beforeMillis 0 is outside 1..3153600000000"},
		"a notice that is no signal":  {specError, `{"version":1,"args":["a"],"dir":"/","notice":{"signal":65,"beforeMillis":1}}`, "spec: notice: signal 65 is outside 1..64"},
		"a notice after all times":    {specError, `{"version":1,"args":["a"],"dir":"/","notice":{"signal":10,"beforeMillis":1,"afterMillis":-1}}`, "spec: notice: afterMillis -1 is outside 0..3153600000000"},
		"a notice of no stop":         {requestError, `{"signal":10,"notice":true}`, "request: notice is of a stop alone"},
		"a notice of a later version": {noticedError, `{"version":2,"signal":10,"at":"2026-01-02T03:04:05Z"}`, "notice: version 2, this program reads version 1"},
		"a notice of no signal":       {noticedError, `{"version":1,"signal":0,"at":"2026-01-02T03:04:05Z"}`, "notice: signal 0 is outside 1..64"},
		"a signal beyond":             {requestError, `{"signal":65}`, "request: signal 65 is outside 1..64"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.parse([]byte(c.text)); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func specError(data []byte) error    { _, err := ParseSpec(data); return err }
func exitError(data []byte) error    { _, err := ParseExit(data); return err }
func noticedError(data []byte) error { _, err := ParseNoticed(data); return err }
func useError(data []byte) error     { _, err := ParseUse(data); return err }
func requestError(data []byte) error { _, err := parseRequest(data); return err }

package launch

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/bounds"
)

// FuzzMessages reads requests and answers from outside bytes: one that is accepted is read
// as the same value once it is written again.
func FuzzMessages(f *testing.F) {
	for _, v := range []any{
		request{Version: 1}, request{Version: 1, Folder: "/var/lib/muster-agent/run/a.0.0", Tenant: "ml", Bounds: bounds.Bounds{CPUs: []int{1, 5}, Memory: 7, Devices: []string{"/dev/nvidia0"}}},
		request{Version: 1, Signal: &signal{Number: 15, PID: 17, Start: 5}},
		answer{Version: 1, Refused: "no user"}, answer{Version: 1, Controllers: bounds.Controllers{"cpu"}},
	} {
		data, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(`{"version":1,"folder":"/a","tenant":"00","bounds":{"cpus":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		again(t, parseRequest, data)
		again(t, parseAnswer, data)
	})
}

func again[T any](t *testing.T, parse func([]byte) (T, error), data []byte) {
	value, err := parse(data)
	if err != nil {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	back, err := parse(text)
	if err != nil {
		t.Fatalf("%q is read as %+v, which is refused: %v", data, value, err)
	}
	if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, text) { // an empty list is no list
		t.Errorf("%q is read as %s, and that as %s: %v", data, text, again, err)
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	for want, text := range map[string]string{
		"version 2, this program reads version 1": `{"version":2}`, `folder "a/b": want an absolute path`: `{"version":1,"folder":"a/b"}`, `folder "/a/../b"`: `{"version":1,"folder":"/a/../b"}`,
		"bounds: millicores 0, memory -5": `{"version":1,"folder":"/a","bounds":{"memory":-5}}`, "signal.number 1: want 15 or 9": `{"version":1,"signal":{"number":1,"pid":5}}`, "signal.pid 1 is outside": `{"version":1,"signal":{"number":9,"pid":1}}`, "signal.pid -5 is outside": `{"version":1,"signal":{"number":9,"pid":-5}}`,
		"want either a folder or a signal": `{"version":1,"folder":"/a","signal":{"number":9,"pid":5}}`, "unknown field": `{"version":1,"user":"root"}`, "data follows": `{"version":1}{}`,
	} {
		if _, err := parseRequest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

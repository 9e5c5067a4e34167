// Package launch has the service manager of the host start the shims of members and the
// scripts around them, and has processes of other users signaled, for an agent without
// rights of its own. The agent asks a helper that is root over a socket; the helper looks
// the user of the tenant up, and asks systemd for a transient service. Neither decides
// which members start, nor what binds them: the helper only keeps the agent from starting
// or signaling anything of a user that the operator's tables do not name.
package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/resource"
)

// version is the version of requests and answers.
const version = 1

// DefaultSocket is where the helper listens.
const DefaultSocket = "/run/muster-launch.sock"

// maxMessage bounds a request and an answer, in bytes.
const maxMessage = 64 << 10

// request is one request of the agent. With a folder, three open files come along: the
// locked file of the folder, the pipe that says that the shim has begun, and the file for
// the shim's own errors.
type request struct {
	Version int `json:"version"`
	// Folder is the folder of the start; "" asks for an answer alone.
	Folder string            `json:"folder,omitempty"`
	Tenant resource.TenantID `json:"tenant,omitempty"`
	Bounds bounds.Bounds     `json:"bounds"`
	// Script is the script of the host to run, Prolog or Epilog, with Env as NAME=VALUE, at
	// most for LimitMillis; "": the shim is to be started. No files come along.
	Script      string   `json:"script,omitempty"`
	Env         []string `json:"env,omitempty"`
	LimitMillis int64    `json:"limitMillis,omitempty"`
	// Signal is sent to a process of attached work; nil: none. Neither a folder nor files
	// come along.
	Signal *signal `json:"signal,omitempty"`
}

// signal is a signal to a process of a user of the operator's tables.
type signal struct {
	Number int    `json:"number"` // SIGTERM or SIGKILL
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // as of shim.Process
}

func (s *signal) check() error {
	switch {
	case s.Number != int(unix.SIGTERM) && s.Number != int(unix.SIGKILL):
		return fmt.Errorf("signal.number %d: want %d or %d", s.Number, unix.SIGTERM, unix.SIGKILL)
	case s.PID < 2 || s.PID > maxPID:
		return fmt.Errorf("signal.pid %d is outside 2..%d", s.PID, maxPID)
	}
	return nil
}

// maxPID bounds the numbers of processes, as Linux does.
const maxPID = 1 << 22

// The scripts of a host.
const (
	Prolog = "prolog"
	Epilog = "epilog"
)

// MaxScript bounds the time of a script.
const MaxScript = 10 * time.Minute

// answer is the answer of the helper.
type answer struct {
	Version int `json:"version"`
	// Refused says why nothing is started, and that a repeated request has the same
	// answer; Failed says why it may have another one.
	Refused string `json:"refused,omitempty"`
	Failed  string `json:"failed,omitempty"`
	// Controllers are those of the host's cgroups that members get.
	Controllers bounds.Controllers `json:"controllers"`
}

const passedFiles = 3

func parseRequest(data []byte) (request, error) {
	r, err := decode[request](data)
	switch {
	case err != nil:
		return request{}, fmt.Errorf("request: %w", err)
	case r.Version != version:
		return request{}, fmt.Errorf("request: version %d, this program reads version %d: install muster-agent and muster-launch together", r.Version, version)
	case r.Signal != nil && r.Folder != "":
		return request{}, errors.New("request: want either a folder or a signal")
	case r.Signal != nil:
		if err := r.Signal.check(); err != nil {
			return request{}, fmt.Errorf("request: %w", err)
		}
		return r, nil
	case r.Folder == "":
		return r, nil
	case !filepath.IsAbs(r.Folder) || filepath.Clean(r.Folder) != r.Folder || strings.ContainsAny(r.Folder, "\x00\n"):
		return request{}, fmt.Errorf("request: folder %.80q: want an absolute path", r.Folder)
	case len(r.Folder) > 4000 || len(r.Tenant) > 256:
		return request{}, fmt.Errorf("request: folder of %d bytes, tenant of %d bytes", len(r.Folder), len(r.Tenant))
	}
	if err := r.checkScript(); err != nil {
		return request{}, fmt.Errorf("request: %w", err)
	}
	if err := r.Bounds.Check(); err != nil {
		return request{}, fmt.Errorf("request: bounds: %w", err)
	}
	return r, nil
}

// checkScript judges what a request says of a script.
func (r *request) checkScript() error {
	if r.Script == "" && len(r.Env) == 0 && r.LimitMillis == 0 {
		return nil
	}
	if r.Script != Prolog && r.Script != Epilog {
		return fmt.Errorf("script %.80q: want %s or %s", r.Script, Prolog, Epilog)
	}
	if r.LimitMillis < 1 || r.LimitMillis > MaxScript.Milliseconds() {
		return fmt.Errorf("limitMillis %d is outside 1..%d", r.LimitMillis, MaxScript.Milliseconds())
	}
	for i, v := range r.Env {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name != "CUDA_VISIBLE_DEVICES" && !strings.HasPrefix(name, "MUSTER_") || strings.ContainsAny(v, "\x00\n") {
			return fmt.Errorf("env[%d]: %.80q is no variable that Muster sets", i, v)
		}
	}
	return nil
}

func parseAnswer(data []byte) (answer, error) {
	a, err := decode[answer](data)
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("answer: %w", err)
	case a.Version != version:
		return answer{}, fmt.Errorf("answer: version %d, this program reads version %d: install muster-agent and muster-launch together", a.Version, version)
	}
	return a, nil
}

// decode reads one JSON value without unknown fields.
func decode[T any](data []byte) (T, error) {
	var value, zero T
	if len(data) > maxMessage {
		return zero, fmt.Errorf("%d bytes, want at most %d", len(data), maxMessage)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		return zero, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return zero, errors.New("data follows the value")
	}
	return value, nil
}

// Slice is the slice of all transient services.
const Slice = "muster.slice"

// mostName bounds the name of a unit, as systemd does, without its ending.
const mostName = 200

// UnitOf is the name of the transient service of a start: of each folder another one.
func UnitOf(f shim.Folder) string { return unitOf("muster-work-", f) }

// ScriptUnitOf is the name of the transient service of a script around a start.
func ScriptUnitOf(script string, f shim.Folder) string { return unitOf("muster-"+script+"-", f) }

func unitOf(prefix string, f shim.Folder) string {
	var name strings.Builder
	name.WriteString(prefix)
	for _, c := range []byte(filepath.Base(string(f))) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, `\x%02x`, c) // as systemd-escape does
		}
	}
	text := name.String()
	if len(text) > mostName {
		text = text[:mostName-17] + "." + digest(text)
	}
	return text + ".service"
}

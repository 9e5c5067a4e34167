package evil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// Coordinator is where one coordinator of the victims' cluster listens, each
// address as "host:port".
type Coordinator struct{ GRPC, REST, Serf string }

// Target is where an honest agent listens.
type Target struct{ Node, GRPC string }

// Spec says which attack to run, from where and against whom.
type Spec struct {
	Mode    string
	Cluster string
	// Node is the attacker's own node id, IP its address and Dir its folder.
	Node, IP, Dir string
	// BootstrapToken lets Node enroll; RESTToken is a tenant's.
	BootstrapToken, RESTToken string
	CAFile                    string
	// Tokens are tokens that let nobody in, or not far enough, by what is wrong with
	// them; Victim is an object of another tenant.
	Tokens       map[string]string
	Victim       Victim
	Coordinators []Coordinator
	Agents       []Target
	// Size multiplies how much a mode sends: 1 is the short round, 10 the long.
	Size int
	// For is how long a mode lasts that has no end of its own.
	For time.Duration
	// Until, if not "", is a count of the report that a hostile host waits for when
	// For is over, for at most mostWait: a vote comes when the leader asks for one.
	Until string
	// Want are the beginnings of answers that a flood of a tenant goes on for when For is
	// over, for at most mostWait: a slow machine gets them late.
	Want []string
	// Certificate, if not "", is a folder (package pki/folder) with the identity
	// to use in place of enrolling.
	Certificate string
}

func (s Spec) check() error {
	addresses := []string{s.IP + ":0"}
	for _, c := range s.Coordinators {
		addresses = append(addresses, c.GRPC, c.REST, c.Serf)
	}
	for _, a := range s.Agents {
		addresses = append(addresses, a.GRPC)
	}
	for _, text := range addresses {
		a, err := netip.ParseAddrPort(text)
		if err != nil || !a.Addr().IsLoopback() {
			return fmt.Errorf("mode %s: address %q is not a loopback address with a port", s.Mode, text)
		}
	}
	if s.Size < 1 || s.Size > 20 || s.For <= 0 || s.For > 5*time.Minute || len(s.Coordinators) == 0 {
		return fmt.Errorf("mode %s: size %d (1..20), for %s (up to 5m), %d coordinators (at least 1)", s.Mode, s.Size, s.For, len(s.Coordinators))
	}
	return nil
}

// Report is what became of an attack, as its program saw it.
type Report struct {
	Mode string
	// Answers counts the answers by the call and its gRPC code or HTTP status:
	// "Register: InvalidArgument", "POST jobs: 429".
	Answers map[string]int
	// Notes are at most maxNotes single observations.
	Notes []string
	Error string `json:",omitempty"` // why the attack could not be run
}

const (
	maxNotes = 40
	maxNote  = 300 // bytes
)

// run is one attack under way. Its methods may be called by several goroutines.
type run struct {
	Spec
	ready func()
	// keyOfRing is the gossip key of the cluster, in base64, once the ring is joined.
	keyOfRing string

	mu     sync.Mutex
	report Report
}

// answered counts the answer to a gRPC call.
func (r *run) answered(call string, err error) {
	r.count(call + ": " + status.Code(err).String())
	if err != nil {
		r.note("%s: %v", call, err)
	}
}

func (r *run) count(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Answers[key]++
}

func (r *run) counted(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.Answers[key]
}

func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxNote {
		text = text[:maxNote] + "…"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Notes) < maxNotes && !slices.Contains(r.report.Notes, text) {
		r.report.Notes = append(r.report.Notes, text)
	}
}

// modes are all attacks by name.
var modes = merge(ringModes, hostModes, networkModes, tenantModes, tenantTricks, tenantNumbers, coordinatorModes)

func merge(parts ...map[string]func(context.Context, *run) error) map[string]func(context.Context, *run) error {
	all := map[string]func(context.Context, *run) error{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// Modes lists the attacks by name.
func Modes() []string { return slices.Sorted(maps.Keys(modes)) }

// Run runs an attack to its end. ready is called when the attacker is in place,
// before the attack; a hostile host is registered by then and its agent serves.
func Run(ctx context.Context, s Spec, ready func()) Report {
	r := &run{Spec: s, ready: sync.OnceFunc(ready), report: Report{Mode: s.Mode, Answers: map[string]int{}}}
	attack, ok := modes[s.Mode]
	err := s.check()
	if !ok {
		err = fmt.Errorf("mode %q is unknown; there are %s", s.Mode, strings.Join(Modes(), ", "))
	}
	if err == nil {
		// A mode that hangs ends too; its own bound is s.For.
		ctx, cancel := context.WithTimeout(ctx, s.For+time.Minute)
		defer cancel()
		if err = attack(ctx, r); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = nil // it lasted as long as it was to last
		}
	}
	r.ready()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.report.Error = err.Error()
	}
	return r.report
}

// Variable is the environment variable that holds the Spec of an attack program
// in JSON; see Main.
const Variable = "MUSTER_EVIL_SPEC"

// ReadyLine is the line that an attack program prints when it is in place.
const ReadyLine = "ready"

// Main is the attack program: it reads the Spec, prints ReadyLine and, at the
// end, the Report as one line of JSON. The end of standard input ends it early.
// It returns the exit code.
func Main() int {
	var s Spec
	if err := json.Unmarshal([]byte(os.Getenv(Variable)), &s); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Variable, err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	report := Run(ctx, s, func() { fmt.Println(ReadyLine) })
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return 1
	}
	return 0
}

// pause waits, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// parallel runs n workers and waits for them.
func parallel(n int, work func(worker int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}

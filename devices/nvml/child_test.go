//go:build cgo && linux

package nvml_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/nvml"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// childVariable makes the test binary a child that talks to one NVML library:
// a process can bind only one. Its value is unused.
const childVariable = "MUSTER_NVML_CHILD"

// answer is what the child says to one command, or, as Change, of its watch.
type answer struct {
	Inventory *devices.Inventory
	Warnings  []string
	Error     string
	NoDriver  bool
	Hung      bool
	Change    *devices.Change
	Running   []devices.Running
	Unknown   []devices.Unknown
	Hangs     string // the call that has not returned
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve obeys commands, one a line: "open", "open PATH", "discover",
// "discover-together" (from four goroutines at once), "close", "watch POLL
// REDISCOVER HANGAFTER" (from what was discovered last), "unwatch" (waits for
// the watch to return), "watch-wait" (a watch that the command waits for), "look
// LIMIT" (a Driver's discovery), "follow POLL REDISCOVER HANGAFTER" (its watch).
func serve(in io.Reader, out io.Writer) error {
	p := &program{encoder: json.NewEncoder(out)}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, argument, _ := strings.Cut(lines.Text(), " ")
		a := answer{}
		if err := p.obey(verb, argument, &a); err != nil {
			a.Error, a.NoDriver, a.Hung = err.Error(), errors.Is(err, nvml.ErrNoDriver), errors.Is(err, nvml.ErrHung)
		}
		if err := p.say(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

// program is the child.
type program struct {
	driver *nvml.Driver
	source *nvml.Source
	known  *devices.Inventory
	cancel context.CancelFunc // of the watch
	ended  chan error         // capacity 1: the watch's only result

	mu      sync.Mutex
	encoder *json.Encoder
}

func (p *program) say(a answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.encoder.Encode(a)
}

func (p *program) obey(verb, argument string, a *answer) (err error) {
	switch verb {
	case "open":
		var opened *nvml.Source
		if opened, err = nvml.Open(argument, lookup()...); err == nil {
			p.source = opened
		}
	case "discover":
		a.Inventory, a.Warnings, err = p.source.Discover()
		p.known = a.Inventory
		a.Running = p.source.Running()
	case "discover-together":
		a.Inventory, err = discoverTogether(p.source)
	case "watch":
		err = p.watch(argument)
	case "watch-wait":
		err = p.source.Watch(context.Background(), p.known, nvml.WatchOptions{}, func(devices.Change) {})
	case "look":
		if p.driver == nil {
			p.driver = nvml.NewDriver("", lookup()...)
		}
		limit, parseErr := time.ParseDuration(argument)
		if parseErr != nil {
			return parseErr
		}
		var found nvml.Found
		found, err = p.driver.Discover(context.Background(), limit)
		a.Inventory, a.Warnings, a.Running, a.Unknown, a.Hangs = found.Inventory, found.Warnings, found.Running, found.Unknown, found.Hung
		p.known = cmp.Or(found.Inventory, &devices.Inventory{})
	case "follow":
		if p.driver == nil {
			p.driver = nvml.NewDriver("", lookup()...)
		}
		err = p.watchBy(p.driver.Watch, argument)
	case "unwatch":
		p.cancel()
		err = <-p.ended
	case "close":
		err = p.source.Close()
	default:
		err = fmt.Errorf("unknown command %q", verb)
	}
	return err
}

func (p *program) watch(argument string) error { return p.watchBy(p.source.Watch, argument) }

// watchBy begins a watch by one of the methods for it.
func (p *program) watchBy(
	watch func(context.Context, *devices.Inventory, nvml.WatchOptions, func(devices.Change)) error, argument string,
) error {
	var intervals [3]time.Duration
	for i, text := range strings.Fields(argument) {
		var err error
		if intervals[i], err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.ended = cancel, make(chan error, 1)
	known := p.known
	go func() {
		options := nvml.WatchOptions{Poll: intervals[0], Rediscover: intervals[1], HangAfter: intervals[2], Retry: 5 * time.Millisecond}
		if known == nil {
			known = &devices.Inventory{}
		}
		p.ended <- watch(ctx, known, options,
			func(c devices.Change) {
				if err := p.say(answer{Change: &c}); err != nil {
					panic(err)
				}
			})
	}()
	return nil
}

// lookup is the child's NUMA lookup: the node that the driver does not tell is
// that of the card's bus number.
func lookup() []nvml.Option {
	if os.Getenv(childVariable) != "lookup" {
		return nil
	}
	return []nvml.Option{nvml.WithNUMANode(func(busID string) (int, bool) {
		var domain, bus int
		if _, err := fmt.Sscanf(busID, "%x:%x:", &domain, &bus); err != nil {
			return 0, false
		}
		return bus, true
	})}
}

// discoverTogether returns the inventory that four discoveries at the same time
// agree on.
func discoverTogether(source *nvml.Source) (*devices.Inventory, error) {
	var all [4]*devices.Inventory
	var group errgroup.Group
	for i := range all {
		group.Go(func() (err error) {
			all[i], _, err = source.Discover()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, inv := range all[1:] {
		if diff := gocmp.Diff(all[0], inv); diff != "" {
			return nil, fmt.Errorf("two discoveries differ:\n%s", diff)
		}
	}
	return all[0], nil
}

// child is a running child process.
type child struct {
	t       *testing.T
	in      io.WriteCloser
	answers chan answer
	stderr  *strings.Builder // complete once the child has ended
	silent  bool             // what it prints there fails the test

	mu      sync.Mutex
	changes []devices.Change // that the watch told and nobody took
	told    chan struct{}    // capacity 1: there are some
}

// startChild runs a child whose dynamic linker finds the library in libDir and
// whose library obeys script. mode "lookup" gives its sources a NUMA lookup.
// Whatever the child or its library prints on standard error fails the test.
func startChild(t *testing.T, libDir, script, mode string) *child {
	t.Helper()
	c := startTalkingChild(t, libDir, script, mode)
	c.silent = true
	return c
}

// startTalkingChild is startChild for a child that may print.
func startTalkingChild(t *testing.T, libDir, script, mode string) *child {
	t.Helper()
	command := exec.Command(os.Args[0])
	// A program under the race detector would wait a second before it exits.
	command.Env = append(os.Environ(), childVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
	command.Env = append(command.Env, nvmltest.Environ(libDir, script)...)
	c := &child{t: t, answers: make(chan answer), told: make(chan struct{}, 1), stderr: &strings.Builder{}}
	command.Stderr = c.stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	c.in = in
	ended := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.sort(out, ended)
	}()
	t.Cleanup(func() {
		in.Close()
		close(ended)
		<-read
		if err := command.Wait(); err != nil {
			t.Errorf("child: %v\n%s", err, c.stderr.String())
		}
		if text := c.stderr.String(); c.silent && text != "" {
			t.Errorf("the child said:\n%s", text)
		}
	})
	return c
}

// sort hands on what the child says until it has ended.
func (c *child) sort(out io.Reader, over <-chan struct{}) {
	defer close(c.answers)
	decoder := json.NewDecoder(out)
	for {
		var a answer
		if err := decoder.Decode(&a); err != nil {
			return
		}
		if a.Change != nil {
			c.mu.Lock()
			c.changes = append(c.changes, *a.Change)
			c.mu.Unlock()
			select {
			case c.told <- struct{}{}:
			default:
			}
			continue
		}
		select {
		case c.answers <- a:
		case <-over:
		}
	}
}

// take returns what the watch told since the last call, and waits until there
// is something.
func (c *child) take(ctx context.Context) []devices.Change {
	c.t.Helper()
	for {
		c.mu.Lock()
		list := c.changes
		c.changes = nil
		c.mu.Unlock()
		if len(list) > 0 {
			return list
		}
		select {
		case <-c.told:
		case <-ctx.Done():
			c.t.Fatalf("the watch tells nothing: %v", ctx.Err())
		}
	}
}

func (c *child) ask(command string) answer {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	a, ok := <-c.answers
	if !ok {
		c.t.Fatalf("%s: the child died", command)
	}
	return a
}

// must is ask for a command that has to succeed.
func (c *child) must(command string) answer {
	c.t.Helper()
	a := c.ask(command)
	if a.Error != "" {
		c.t.Fatalf("%s: %s", command, a.Error)
	}
	if a.Inventory != nil {
		if err := a.Inventory.Validate(); err != nil {
			c.t.Fatalf("%s: %v", command, err)
		}
	}
	return a
}

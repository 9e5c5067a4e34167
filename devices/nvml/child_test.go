//go:build cgo && linux

package nvml_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/nvml"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// childVariable makes the test binary a child that talks to one NVML library:
// a process can bind only one. Its value is unused.
const childVariable = "MUSTER_NVML_CHILD"

// answer is what the child says to one command.
type answer struct {
	Inventory *devices.Inventory
	Warnings  []string
	Error     string
	NoDriver  bool
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
// "discover-together" (from four goroutines at once), "close".
func serve(in io.Reader, out io.Writer) error {
	// The node that the driver does not tell is that of the card's bus number.
	lookup := nvml.WithNUMANode(func(busID string) (int, bool) {
		var domain, bus int
		if _, err := fmt.Sscanf(busID, "%x:%x:", &domain, &bus); err != nil {
			return 0, false
		}
		return bus, true
	})
	var source *nvml.Source
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var a answer
		var err error
		verb, argument, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "open":
			var options []nvml.Option
			if os.Getenv(childVariable) == "lookup" {
				options = append(options, lookup)
			}
			var opened *nvml.Source
			if opened, err = nvml.Open(argument, options...); err == nil {
				source = opened
			}
		case "discover":
			a.Inventory, a.Warnings, err = source.Discover()
		case "discover-together":
			a.Inventory, err = discoverTogether(source)
		case "close":
			err = source.Close()
		default:
			return fmt.Errorf("unknown command %q", lines.Text())
		}
		if err != nil {
			a.Error, a.NoDriver = err.Error(), errors.Is(err, nvml.ErrNoDriver)
		}
		if err := json.NewEncoder(out).Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
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
		if diff := cmp.Diff(all[0], inv); diff != "" {
			return nil, fmt.Errorf("two discoveries differ:\n%s", diff)
		}
	}
	return all[0], nil
}

// child is a running child process.
type child struct {
	t       *testing.T
	in      io.WriteCloser
	answers *json.Decoder
}

// startChild runs a child whose dynamic linker finds the library in libDir and
// whose library obeys script. mode "lookup" gives its sources a NUMA lookup.
func startChild(t *testing.T, libDir, script, mode string) *child {
	t.Helper()
	command := exec.Command(os.Args[0])
	// A program under the race detector would wait a second before it exits.
	command.Env = append(os.Environ(), childVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
	command.Env = append(command.Env, nvmltest.Environ(libDir, script)...)
	var stderr strings.Builder
	command.Stderr = &stderr
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
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("child: %v\n%s", err, stderr.String())
		}
	})
	return &child{t: t, in: in, answers: json.NewDecoder(out)}
}

func (c *child) ask(command string) answer {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	var a answer
	if err := c.answers.Decode(&a); err != nil {
		c.t.Fatalf("%s: the child died: %v", command, err)
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

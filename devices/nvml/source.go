//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
)

// Built reports whether this program was built so that it can load NVML.
const Built = true

const defaultLibrary = "libnvidia-ml.so.1"

// The states of a Source's watch.
const (
	unwatched  int32 = iota
	watched          // a Watch runs
	leftBehind       // a Watch has ended, a call of it has not
)

// Source is an open NVML library. Between discoveries, and while no Watch
// runs, the library is shut down, so that the driver can be reloaded and each
// discovery sees the cards of its time.
type Source struct {
	path     string
	numaNode func(busID string) (int, bool)

	watching atomic.Int32                      // unwatched, watched or leftBehind
	stuck    atomic.Int32                      // cards whose calls the watch has left behind
	running  atomic.Pointer[[]devices.Running] // of the last discovery

	mu      sync.Mutex         // held over every call into the library
	handle  *dl.DynamicLibrary // nil once closed
	library nvml.Interface
	told    []string // the warnings of the last discovery
}

func open(libraryPath string, o options, asking asker) (*Source, error) {
	if libraryPath == "" {
		libraryPath = defaultLibrary
	}
	asking("dlopen of "+libraryPath, nil)
	if err := refuseSecond(libraryPath); err != nil {
		return nil, err
	}
	handle := dl.New(libraryPath, dl.RTLD_LAZY)
	if err := handle.Open(); err != nil {
		return nil, loadError(libraryPath, err)
	}
	s := &Source{
		path: libraryPath, numaNode: o.numaNode,
		handle: handle, library: nvml.New(nvml.WithLibraryPath(libraryPath)),
	}
	err := s.requireSymbols()
	if err == nil {
		asking("nvmlInit_v2", nil)
		err = s.start()
	}
	if err == nil {
		asking("nvmlShutdown", nil)
		err = s.stop()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// loadError distinguishes a library that is absent from a library that cannot be used.
// A bare name is searched for by the linker, whose only answer is no.
func loadError(path string, err error) error {
	if strings.Contains(path, "/") {
		if _, statErr := os.Stat(path); !errors.Is(statErr, fs.ErrNotExist) {
			return fmt.Errorf("load NVML library %s: %w", path, err)
		}
	}
	return fmt.Errorf("%w: load NVML library %s: %w", ErrNoLibrary, path, err)
}

// requireSymbols checks the functions without which no GPU can be found; all
// drivers that Muster can use have them. Every other function may be absent.
func (s *Source) requireSymbols() error {
	var missing []string
	for _, name := range []string{"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"} {
		if !s.has(name) {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return fmt.Errorf("load NVML library %s: it is no NVML library, or older than Muster can use: it lacks %s",
			s.path, strings.Join(missing, ", "))
	}
	return nil
}

// has reports whether the library has a function of this name.
func (s *Source) has(symbol string) bool { return s.handle.Lookup(symbol) == nil }

// start has the library take up contact with the driver.
func (s *Source) start() error {
	ret := s.library.Init()
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("%w: NVML library %s: nvmlInit_v2: %w", ErrNoDriver, s.path, answer(ret))
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("start NVML library %s: nvmlInit_v2: %w: the driver was upgraded under a running kernel module: reload the module or reboot", s.path, answer(ret))
	default:
		return fmt.Errorf("start NVML library %s: nvmlInit_v2: %w", s.path, answer(ret))
	}
}

// stop reverses start. A library that cannot be shut down stays up.
func (s *Source) stop() error {
	if !s.has("nvmlShutdown") {
		return nil
	}
	if ret := s.library.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("shut down NVML library %s: nvmlShutdown: %w", s.path, answer(ret))
	}
	return nil
}

// Discover asks the driver for all GPUs and returns those that can be used,
// in an Inventory that passes Validate, and one warning for each fault: a card
// that is lost, without a UUID or with another card's UUID is left out; a value that
// the driver does not report about a card is unknown. It waits for the driver.
//
// At most devices.MaxDevices cards are used. ErrHung: a call of a Watch has not
// returned. ErrNoDriver means that the driver has gone since Open; a later Discover
// finds it again.
func (s *Source) Discover() (inv *devices.Inventory, warnings []string, err error) {
	if s.watching.Load() == leftBehind || s.stuck.Load() > 0 {
		return nil, nil, fmt.Errorf("discover GPUs through %s: %w", s.path, ErrHung)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return nil, nil, fmt.Errorf("discover GPUs through %s: the source is closed", s.path)
	}
	silent := func(string, *card) {}
	found, err := s.look(nil, silent)
	if err != nil {
		return nil, nil, err
	}
	return found.Inventory, slices.Clone(found.Warnings), nil
}

// look is Discover with the lock held. With patience it may leave calls behind;
// the library then stays up, and the caller shuts it down once they have ended.
func (s *Source) look(p *patience, asking asker) (found Found, err error) {
	asking("nvmlInit_v2", nil)
	if err := s.start(); err != nil {
		return Found{}, fmt.Errorf("discover GPUs: %w", err)
	}
	if p == nil {
		defer func() {
			if stopErr := s.stop(); stopErr != nil {
				found, err = Found{}, errors.Join(err, fmt.Errorf("discover GPUs: %w", stopErr))
			}
		}()
	}
	d := s.discovery(nil, asking)
	d.patience = p
	seen, cards, err := d.run()
	if err != nil {
		return Found{}, fmt.Errorf("discover GPUs through %s: %w", s.path, err)
	}
	merged, more := merge(&devices.Inventory{}, seen)
	found.Inventory, found.Running = merged, d.runningOn(cards[:min(len(cards), len(merged.Devices))])
	found.Warnings, found.Unknown = append(d.warnings, more...), d.unknown
	s.told = found.Warnings
	s.running.Store(&found.Running)
	return found, nil
}

// runningOn has the processes on the cards.
func (d *discovery) runningOn(cards []*card) []devices.Running {
	type result struct {
		from    *discovery
		running []devices.Running
	}
	var all []devices.Running
	frozen := frozenCards(cards)
	each(d.patience, len(cards), d.asking, func(i int, asking asker) result {
		from, c := d.fork(asking), frozen[i]
		return result{from, from.running(&c)}
	}, func(_ int, r result) {
		d.adopt(r.from)
		all = append(all, r.running...)
	}, func(i int, q *question) {
		if q != unasked {
			d.warnf("%v: processes: %s: unknown", cards[i], q.silence(time.Now()))
		}
	})
	return all
}

// Running returns the processes on the devices and instances at the last Discover.
// Devices whose driver does not report them are left out. It never blocks.
func (s *Source) Running() []devices.Running {
	if last := s.running.Load(); last != nil {
		return slices.Clone(*last)
	}
	return nil
}

// discovery is a new pass over the cards.
func (s *Source) discovery(known map[string]string, asking asker) *discovery {
	return &discovery{library: s.library, has: s.has, numaNode: s.numaNode, known: known, note: asking}
}

// beginWatch takes the source for one Watch and returns the warnings of the
// last discovery.
func (s *Source) beginWatch() (told []string, err error) {
	if !s.watching.CompareAndSwap(unwatched, watched) {
		if s.watching.Load() == leftBehind {
			return nil, ErrHung
		}
		return nil, errors.New("it is being watched already")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		s.endWatch()
		return nil, errors.New("the source is closed")
	}
	return s.told, nil
}

func (s *Source) endWatch() { s.watching.Store(unwatched) }

// Close releases the library. It may be called more than once. It is refused
// while a Watch runs, and with ErrHung while a call of an ended one has not
// returned.
func (s *Source) Close() error {
	if s.watching.Load() == leftBehind {
		return fmt.Errorf("close NVML library %s: %w", s.path, ErrHung)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return nil
	}
	if s.watching.Load() != unwatched {
		return fmt.Errorf("close NVML library %s: it is being watched", s.path)
	}
	handle := s.handle
	s.handle = nil
	if err := handle.Close(); err != nil {
		return fmt.Errorf("close NVML library %s: %w", s.path, err)
	}
	return nil
}

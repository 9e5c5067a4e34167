package hostile

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/test/cluster"
)

// stage stands between a cluster and its test: it collects failures (a process
// that ended by itself, a panic in a log), so that they count against the attack
// that was under way, and it can end the cluster before the test ends.
type stage struct {
	testing.TB
	mu       sync.Mutex
	faults   []string
	cleanups []func()
	// alarm, if set, is called at each fault: nothing is worth waiting for then.
	alarm func()
}

func (s *stage) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm != nil {
		s.alarm()
	}
	if len(text) > 3000 {
		text = text[:3000] + "…"
	}
	s.faults = append(s.faults, text)
}

// watch sets the alarm.
func (s *stage) watch(alarm func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarm = alarm
}

// take returns the faults since the last call.
func (s *stage) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.faults
	s.faults = nil
	return list
}

func (s *stage) Errorf(format string, args ...any) { s.fault(fmt.Sprintf(format, args...)) }
func (s *stage) Error(args ...any)                 { s.fault(fmt.Sprint(args...)) }
func (s *stage) Fatalf(format string, args ...any) { s.Errorf(format, args...); runtime.Goexit() }
func (s *stage) Fatal(args ...any)                 { s.Error(args...); runtime.Goexit() }

// Failed is false: the attack's own test shows the logs that matter.
func (s *stage) Failed() bool { return false }

func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// try runs f to its end or to its first Fatal.
func (s *stage) try(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

// end runs the cleanups, the last one first.
func (s *stage) end() {
	s.mu.Lock()
	list := slices.Clone(s.cleanups)
	s.cleanups = nil
	s.mu.Unlock()
	for _, f := range slices.Backward(list) {
		s.try(f)
	}
}

// world is the cluster that attacks of one size run against, one after the
// other. An attack that did harm costs the cluster: the next one gets another.
type world struct {
	t            *testing.T
	coordinators int

	stage       *stage
	tenants     *tenants
	c           *cluster.Cluster
	attacker    *cluster.Host
	undisturbed latencies
	attacks     int    // in this cluster: attackers have node ids of their own
	deposed     string // folder with a coordinator's certificate
}

// honestAgents is how many honest agents a cluster has.
const honestAgents = 3

// samples is how many allocations of the honest client are measured without an
// attack: few where nothing is compared with them.
func samples() int {
	if *long {
		return 200
	}
	return 20
}

// prepare starts a cluster if there is none, and measures the honest client
// alone.
func (w *world) prepare() error {
	if w.c != nil {
		return nil
	}
	w.stage, w.attacks = &stage{TB: w.t}, 0
	w.stage.try(func() {
		c := cluster.Start(w.stage, cluster.Options{Etcd: 1, Coordinators: w.coordinators, Agents: honestAgents, Quiet: true, LeaseTTL: 5 * time.Second})
		w.attacker = c.Host("attacker")
		w.c = c
	})
	if w.c == nil {
		return fmt.Errorf("the cluster does not start: %v", w.stage.take())
	}
	var err error
	if w.tenants, err = admitTenants(w.c); err != nil {
		return err
	}
	client := begin(context.Background(), w.c.ClientOf(w.tenants.honest), "calm")
	client.await(context.Background(), samples(), patience)
	calm, err := client.end()
	w.undisturbed = calm
	return err
}

// drop ends the cluster.
func (w *world) drop() []string {
	if w.stage == nil {
		return nil
	}
	w.stage.end()
	w.c = nil
	return w.stage.take()
}

// deposedLeader is a folder with a good certificate of a coordinator that leads
// no more.
func (w *world) deposedLeader(ctx context.Context) (string, error) {
	dir := filepath.Join(w.t.TempDir(), "identity")
	f, err := folder.Open(dir)
	if err != nil {
		return "", err
	}
	e, err := enroll.Open(ctx, enroll.Config{Cluster: cluster.Name, ID: "coordinator-9", Store: w.c.Store},
		func(keys [][]byte) (enroll.Keyring, error) { return gossip.NewKeyring(keys) })
	if err != nil {
		return "", err
	}
	m := e.TLS().Material()
	return dir, f.Save(folder.Party{Chain: m.Chain, Key: m.Key, Roots: m.Roots})
}

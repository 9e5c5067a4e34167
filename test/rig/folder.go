package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// folder is a host's assignment files as one process changes them. They are
// files of this machine; a power cut leaves them as they are, and the next boot
// must not trust them.
type folder struct{ mount }

// change carries out one change between the two sides of its step.
func (f folder) change(step string, act func() error) error {
	var failed error
	if err := f.do(step, func() { failed = act() }); err != nil {
		return err
	}
	return failed
}

// WriteFile implements handoff.FS.
func (f folder) WriteFile(path string, data []byte, mode fs.FileMode) error {
	err := f.change("assignment write", func() error { return os.WriteFile(path, data, mode) })
	if errors.Is(err, ErrTorn) {
		return errors.Join(err, os.WriteFile(path, data[:len(data)/2], mode))
	}
	return err
}

// Allocate implements handoff.FS. The disk of the rig is never full.
func (f folder) Allocate(string, int64) error { return nil }

// Rename implements handoff.FS.
func (f folder) Rename(from, to string) error {
	return f.change("assignment rename", func() error { return os.Rename(from, to) })
}

// Remove implements handoff.FS.
func (f folder) Remove(path string) error {
	return f.change("assignment remove", func() error { return os.Remove(path) })
}

// assignments is the folder that launchers on the host look at.
func (a *Agent) assignments() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return filepath.Join(a.dir, fmt.Sprintf("disk-%d", a.wipes), "assignments")
}

// checkFolder compares what launchers on a host see with what its agent holds,
// by "transaction/member".
func (s *state) checkFolder(a *Agent, held map[string]resource.Assignment) {
	dir := a.assignments()
	files, err := handoff.Open(dir, handoff.Options{})
	if err != nil {
		s.problem("assignments of %s: %v", a.Node, err)
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.problem("assignments of %s: %v", a.Node, err)
		return
	}
	there, want := map[string]bool{}, map[string]bool{}
	shown := map[string]resource.Assignment{}
	for _, e := range entries {
		there[e.Name()] = true
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		g, err := readAssignment(filepath.Join(dir, e.Name()))
		if err != nil {
			s.problem("assignments of %s: %v", a.Node, err)
		}
		for _, m := range g.Members {
			shown[fmt.Sprintf("%s/%d", g.Tx, m.Index)] = m.Assignment
		}
		for _, path := range files.Paths(g) {
			want[filepath.Base(path)] = true
		}
	}
	if diff := cmp.Diff(held, shown, cmpopts.EquateEmpty()); diff != "" {
		s.problem("launchers on %s (-grants +files):\n%s", a.Node, diff)
	}
	if diff := cmp.Diff(want, there); diff != "" {
		s.problem("files on %s (-whole +there):\n%s", a.Node, diff)
	}
}

// readAssignment reads one transaction's document.
func readAssignment(path string) (handoff.Grant, error) {
	var d struct {
		Transaction resource.TxID
		Members     []struct {
			Member     int
			Assignment resource.Assignment
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return handoff.Grant{}, err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return handoff.Grant{}, fmt.Errorf("%s: %w", path, err)
	}
	g := handoff.Grant{Tx: d.Transaction}
	for _, m := range d.Members {
		g.Members = append(g.Members, grant.Member{Index: m.Member, Assignment: m.Assignment})
	}
	return g, nil
}

// Evict asks the agent of a node for the end of an allocation, as an operator
// or a program on the host does.
func (c *Cluster) Evict(ctx context.Context, node resource.NodeID, allocation string, grace time.Duration) (*schedulerv1.EvictResponse, error) {
	conn, err := grpc.NewClient("passthrough:///"+string(node), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(rpcauth.Credentials(c.token)), grpc.WithContextDialer(c.net.dialer("operator", &process{name: "operator"})))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return schedulerv1.NewNodeAgentClient(conn).EvictAllocation(ctx, &schedulerv1.EvictRequest{
		AllocationId: allocation, GracePeriodSeconds: int64(grace / time.Second), Reason: "asked at the node",
	})
}

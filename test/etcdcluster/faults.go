package etcdcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Kill ends a member as SIGKILL does. Its folder stays.
func (c *Cluster) Kill(i int) { c.members[i].end() }

// Stop ends a member in an orderly way. Its folder stays.
func (c *Cluster) Stop(i int) {
	c.t.Helper()
	if err := c.members[i].stop(); err != nil {
		c.t.Fatalf("stop member %d: %v", i, err)
	}
}

// Pause freezes a member: its connections stay open and nothing is answered.
// It returns once no thread of the process runs.
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	if err := c.members[i].signal(syscall.SIGSTOP); err != nil {
		c.t.Fatalf("pause member %d: %v", i, err)
	}
	ctx, cancel := within()
	defer cancel()
	for {
		stopped, err := c.members[i].stopped()
		if err != nil {
			c.t.Fatalf("pause member %d: %v", i, err)
		}
		if stopped {
			return
		}
		if !pause(ctx) {
			c.t.Fatalf("pause member %d: a thread of it still runs after %v", i, patience)
		}
	}
}

// Resume lets a paused member go on.
func (c *Cluster) Resume(i int) {
	c.t.Helper()
	if err := c.members[i].signal(syscall.SIGCONT); err != nil {
		c.t.Fatalf("resume member %d: %v", i, err)
	}
}

// Restart starts a member again with the folder it had, after Kill or Stop; a
// member that runs is killed first. It does not wait for the cluster.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.Kill(i)
	c.launch(i, "existing")
}

// Replace removes a member from the cluster and adds a new one, with another
// address and an empty folder, in its place. The cluster must have a majority.
func (c *Cluster) Replace(i int) {
	c.t.Helper()
	old, next := c.members[i], c.newMember(c.members[i].name+"x", i)
	// A cluster that was restarted a moment ago refuses both until it has
	// counted its members.
	c.insist(fmt.Sprint("remove member ", i), c.others(i), func(ctx context.Context, admin *clientv3.Client) error {
		list, err := admin.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if m.Name == old.name {
				_, err = admin.MemberRemove(ctx, m.ID)
			}
		}
		return err
	})
	old.end()
	c.insist("add member "+next.name, c.others(i), func(ctx context.Context, admin *clientv3.Client) error {
		_, err := admin.MemberAdd(ctx, []string{c.scheme() + "://" + next.peer()})
		return err
	})
	c.members[i] = next
	c.launch(i, "existing")
	c.AwaitHealthy()
}

func (c *Cluster) others(i int) []int {
	var out []int
	for k := range c.members {
		if k != i {
			out = append(out, k)
		}
	}
	return out
}

// SetQuotaBytes restarts every member with another --quota-backend-bytes, one
// after the other, and waits for each.
func (c *Cluster) SetQuotaBytes(n int64) {
	c.t.Helper()
	c.o.QuotaBytes = n
	for i := range c.members {
		c.Stop(i)
		c.launch(i, "existing")
		c.AwaitHealthy()
	}
}

// Snapshot copies the folders of all members into dir, as of one moment: they
// are paused meanwhile. What was acknowledged before the call is in it.
func (c *Cluster) Snapshot(dir string) {
	c.t.Helper()
	for i, m := range c.members {
		if m.cmd != nil && !m.paused {
			c.Pause(i)
			defer c.Resume(i)
		}
	}
	for _, m := range c.members {
		if err := copyFolder(filepath.Join(dir, m.name), m.dir); err != nil {
			c.t.Fatalf("copy the folder of member %s: %v", m.name, err)
		}
	}
}

// RestoreAll kills every member, puts the folders of a Snapshot in the place of
// theirs and starts them again: the cluster forgets what came after.
func (c *Cluster) RestoreAll(dir string) {
	c.t.Helper()
	for i := range c.members {
		c.Kill(i)
	}
	for i, m := range c.members {
		if err := m.wipe(); err != nil {
			c.t.Fatalf("remove the folder of member %d: %v", i, err)
		}
		if err := copyFolder(m.dir, filepath.Join(dir, m.name)); err != nil {
			c.t.Fatalf("restore the folder of member %d: %v", i, err)
		}
	}
	for i := range c.members {
		c.launch(i, "existing")
	}
	c.AwaitHealthy()
}

// AwaitHealthy waits until every member that runs and is not paused answers a
// linearizable read.
func (c *Cluster) AwaitHealthy() {
	c.t.Helper()
	for i, m := range c.members {
		if m.cmd != nil && !m.paused {
			c.insist(fmt.Sprint("read through member ", i), []int{i}, func(ctx context.Context, admin *clientv3.Client) error {
				_, err := admin.Get(ctx, "/")
				return err
			})
		}
	}
}

// Leader is the index of the members' leader. It waits until there is one.
func (c *Cluster) Leader() int {
	c.t.Helper()
	leader := -1
	c.insist("find the leader", nil, func(ctx context.Context, admin *clientv3.Client) error {
		for i, m := range c.members {
			if m.cmd == nil || m.paused {
				continue
			}
			if s, err := admin.Status(ctx, c.Endpoint(i)); err == nil && s.Leader == s.Header.MemberId {
				leader = i
				return nil
			}
		}
		return errors.New("no member leads")
	})
	return leader
}

// insist repeats a step of an administrator until it is done, with a client on
// some members or on all.
func (c *Cluster) insist(what string, members []int, step func(context.Context, *clientv3.Client) error) {
	c.t.Helper()
	ctx, cancel := within()
	defer cancel()
	for {
		client, err := c.dial(members...)
		if err == nil {
			short, done := context.WithTimeout(ctx, attempt)
			err = step(short, client)
			done()
			_ = client.Close()
		}
		if err == nil {
			return
		}
		if !pause(ctx) {
			c.t.Fatalf("%s: not done within %v: %v", what, patience, err)
		}
	}
}

// pause waits for a moment; it reports false when ctx has ended.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Paused reports whether a member is paused.
func (c *Cluster) Paused(i int) bool { return c.members[i].paused }

// Running reports whether a member was started and not ended.
func (c *Cluster) Running(i int) bool { return c.members[i].cmd != nil }

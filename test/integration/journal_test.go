package integration

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/programs"
)

// The journal's layout, as package agent/journal documents it.
const (
	journalHeader = 64
	recordHeader  = 16
)

// journalOf returns the path of an agent's journal and the offset and length
// of each of its records, headers included.
func journalOf(t *testing.T, a *daemon) (path string, records [][2]int) {
	t.Helper()
	path = filepath.Join(a.dataDir, "journal", "journal")
	data := read(t, path)
	for at := journalHeader; at+recordHeader <= len(data); {
		length := int(binary.LittleEndian.Uint32(data[at:]))
		if length == 0 {
			break
		}
		records = append(records, [2]int{at, recordHeader + length})
		at += recordHeader + length
	}
	if len(records) < 3 {
		t.Fatalf("%s has %d records, want some more", path, len(records))
	}
	return path, records
}

// oneNode is a cluster of separate programs whose only node holds 7 of its 8
// devices in two allocations.
func oneNode(t *testing.T) *cluster {
	t.Helper()
	c := startCluster(t, 1)
	for _, j := range []*api.Job{gang("training", 1, gpus(4)), gang("serving", 1, gpus(3))} {
		c.submit(j)
		c.awaitRunning(j.Metadata.Name)
	}
	c.awaitAssignmentFiles(2)
	return c
}

// mustHaveReadopted checks that the agent, under another incarnation, holds
// what it held, and that nobody else gets it.
func (c *cluster) mustHaveReadopted(b before) {
	c.t.Helper()
	agent := c.agents[0]
	programs.Eventually(c.t, patience, "the agent registers under another incarnation", func() error {
		if now := c.incarnation(agent.name); now == b.incarnations[agent.name] {
			return fmt.Errorf("it is still %+v", now)
		}
		return nil
	})
	c.awaitPhase(agent.name, "Ready")
	// The node is shown as the leader saw it up to a second ago: it may be Ready before
	// the agent has read its records.
	var after before
	programs.Eventually(c.t, patience, "the agent has handed out the same as before", func() error {
		after = c.remember()
		if d := cmp.Diff(b.grants, after.grants); d != "" {
			return fmt.Errorf("it has changed (-before +after):\n%s", d)
		}
		return nil
	})
	if d := cmp.Diff(b.holdings, after.holdings); d != "" {
		c.t.Errorf("the work that runs has changed (-before +after):\n%s", d)
	}
	programs.Eventually(c.t, patience, "launchers are told the same as before", func() error {
		if changed := differing(b.files, c.assignmentFiles()); len(changed) > 0 {
			return fmt.Errorf("assignment files have changed: %v", changed)
		}
		return nil
	})
	if boot := b.incarnations[agent.name].BootID; after.incarnations[agent.name].BootID != boot {
		c.t.Errorf("the boot id changed although the kernel did not: %+v, want %s", after.incarnations[agent.name], boot)
	}
	c.submit(gang("greedy", 1, gpus(2)))
	c.submit(gang("modest", 1, gpus(1)))
	c.awaitRunning("modest")
	c.wantPhase("greedy", api.Queued)
	c.remove("training")
	c.awaitRunning("greedy")
	if devices, _ := distinctGPUs(c.t, c.allocations()); devices != 6 {
		c.t.Errorf("%d devices are held, want 6", devices)
	}
}

func TestJournalCorruptBeforeItsTailIsRefusedAndNewJournalReadopts(t *testing.T) {
	t.Parallel()
	c := oneNode(t)
	agent, before := c.agents[0], c.remember()
	agent.stop()
	path, records := journalOf(t, agent)
	damaged := read(t, path)
	at := records[1][0]
	damaged[at+recordHeader+1] ^= 0x40
	write(t, path, damaged, 0o600)

	agent.refuses(1, nil, path, fmt.Sprintf("offset %d", at), "--new-journal")
	agent.refuses(1, nil, path) // again: a refusal repairs nothing
	if !bytes.Equal(read(t, path), damaged) {
		t.Error("the refused starts changed the journal")
	}
	if d := cmp.Diff(before.holdings, c.holdings()); d != "" {
		t.Errorf("with the agent unable to start the allocations changed (-before +after):\n%s", d)
	}

	agent.start("--new-journal")
	c.mustHaveReadopted(before)
	if !bytes.Equal(read(t, path+".corrupt-1"), damaged) {
		t.Error("the damaged journal was not moved aside as it was")
	}
	c.awaitAssignmentFiles(3)
	again := c.remember()
	c.restart(agent) // without the flag it goes on with the new journal
	c.awaitPhase(agent.name, "Ready")
	c.mustBeAsBefore(again)
}

func TestTornTailOfTheJournalIsCutUnderANewIncarnation(t *testing.T) {
	t.Parallel()
	c := oneNode(t)
	agent, before := c.agents[0], c.remember()
	agent.kill()
	path, records := journalOf(t, agent)
	last := records[len(records)-1]
	whole := read(t, path)
	write(t, path, whole[:last[0]+last[1]-3], 0o600)
	agent.start()
	c.mustHaveReadopted(before)
}

func TestLostJournalIsReplacedByWhatTheStoreKnows(t *testing.T) {
	t.Parallel()
	c := oneNode(t)
	agent, before := c.agents[0], c.remember()
	agent.kill()
	write(t, filepath.Join(agent.dataDir, "journal", "journal"), nil, 0o600)
	agent.refuses(1, nil, filepath.Join(agent.dataDir, "journal", "journal"), "offset 0")
	agent.start("--new-journal")
	c.mustHaveReadopted(before)
}

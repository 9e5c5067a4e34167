package rig

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// complaints are the errors that a test would have had.
type complaints struct {
	testing.TB
	mu   sync.Mutex
	text strings.Builder
}

func (c *complaints) Error(args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(&c.text, args...)
}

func (c *complaints) Errorf(format string, args ...any) { c.Error(fmt.Sprintf(format, args...)) }

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// What is written and said here breaks what the audit is shown of each kind.
func TestTheAuditSeesTheStoreAndTheMessages(t *testing.T) {
	unit := record.UnitPath{Namespace: "ns", Kind: record.AllocUnit, Name: "u"}
	ends := record.Tx{
		State: grant.RecordReleasing, Epoch: 1, Unit: unit, UnitUID: "u", Members: []record.Placement{{Node: "n1"}},
		Charges: []record.Charge{{Tree: quota.Tree, Group: "ns", Request: resource.Vector{resource.GPU: 1}}},
	}
	tx := resource.NewTxID("u", 1, 1, resource.Nonce{})
	for name, c := range map[string]struct {
		act  func(a *audit, s *mem.Store)
		want string
	}{
		"nothing": {func(*audit, *mem.Store) {}, ""},
		"a record": {func(_ *audit, s *mem.Store) {
			if _, err := s.Txn(context.Background(), record.Txn{Then: []record.Op{record.Put(record.TxKey(tx), record.MustEncode(ends))}}); err != nil {
				t.Fatal(err)
			}
		}, "I11 edges"},
		"a Txn of a leader that was": {func(a *audit, s *mem.Store) {
			txn := record.Txn{
				If:   []record.Compare{{Key: record.LeaderPrefix + "l", Target: record.CompareCreateRev, Rev: 9}},
				Then: []record.Op{record.Put(record.TxKey(tx), record.MustEncode(ends))},
			}
			candidate := record.Put(record.LeaderPrefix+"l", record.MustEncode(record.LeaderAddress{ID: "l"}))
			at, err := s.Txn(context.Background(), record.Txn{Then: []record.Op{candidate}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			a.landed("c1", at.Revision+1, txn)
			if _, err := s.Txn(context.Background(), record.Txn{Then: []record.Op{record.Put(record.Root+"other", []byte("x"))}}); err != nil {
				t.Fatal(err)
			}
		}, "I12 writers"},
		"a Reserve of a later epoch": {func(a *audit, _ *mem.Store) {
			a.told("n1", &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{Tx: string(tx)}}})
		}, "names attempts"},
		"a promise to who was deposed": {func(a *audit, _ *mem.Store) {
			a.heard("n1", 2, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{Occupancy: &musterv1.Occupancy{}}})
			a.heard("n1", 2, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{Tx: string(tx), State: musterv1.Reply_RESERVED}}})
		}, "I12 promises"},
		"a victim that is freed at once": {func(a *audit, s *mem.Store) {
			evicting := ends
			evicting.State = grant.RecordEvicting
			if _, err := s.Txn(context.Background(), record.Txn{Then: []record.Op{record.Put(record.TxKey(tx), record.MustEncode(evicting))}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			a.restarts["n2"] = time.Now()
			a.told("n1", &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Evict{Evict: &musterv1.Evict{Tx: string(tx), GraceMillis: 5000}}})
			a.heard("n1", 1, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{Tx: string(tx), State: musterv1.Reply_FREED}}})
		}, "I8 freed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mem.Open(mem.Options{})
				found := &complaints{TB: t}
				a := startAudit(found, s, nil)
				c.act(a, s)
				synctest.Wait()
				a.stop()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if text := found.String(); c.want == "" && text != "" || !strings.Contains(text, c.want) {
					t.Errorf("complained %q, want %q", text, c.want)
				}
			})
		})
	}
}

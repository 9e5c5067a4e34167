package resource

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// NodeID names one host; it is stable over restarts and unique in a cluster.
type NodeID string

// TenantID names the tenant that is charged. Every namespace belongs to one tenant.
type TenantID string

// UnitUID is the immutable identifier of a unit: the smallest all-or-nothing
// set of members (PROTOCOL.md section 1).
type UnitUID string

// TxID names one attempt to place one unit. See NewTxID for its parts.
type TxID string

// Epoch is the create revision of the leader's election key in the store.
// Greater is newer; 0 means "no leader seen yet".
type Epoch int64

// Revision is a store (etcd) revision.
type Revision int64

// Incarnation identifies the memory that an agent's promises depend on.
type Incarnation struct {
	// JournalID is the id of the agent's journal.
	JournalID string `json:"journalID" example:"5f0c2a9e41d7b386"`
	// BootID is the kernel's id of the boot.
	BootID string `json:"bootID" example:"1c6f3e1e-0d9f-4b7e-9a53-6f3a0d2b8c11"`
}

// String returns "journal/boot".
func (i Incarnation) String() string { return i.JournalID + "/" + i.BootID }

// IsZero reports whether the incarnation is unset.
func (i Incarnation) IsZero() bool { return i.JournalID == "" && i.BootID == "" }

// Nonce is the random part of a TxID. Only the transaction's
// members receive it, so that no other party can abort the transaction in advance.
type Nonce [16]byte

// NewTxID builds the identifier of attempt (epoch, counter) at unit. Attempts
// are never reused: the epoch is unique to a leader and the counter to an
// attempt within it, so no write is needed to draw one. The unit is not empty
// and holds no dot; the epoch is not negative.
func NewTxID(unit UnitUID, epoch Epoch, counter uint64, nonce Nonce) TxID {
	return TxID(fmt.Sprintf("%s.%x.%x.%s", unit, int64(epoch), counter, hex.EncodeToString(nonce[:])))
}

// Attempt returns the parts of a TxID that NewTxID made. It refuses anything
// else with an error that names the identifier.
func (t TxID) Attempt() (unit UnitUID, epoch Epoch, counter uint64, err error) {
	parts := strings.SplitN(string(t), ".", 5)
	if len(parts) != 4 || parts[0] == "" || len(parts[3]) != 32 {
		return "", 0, 0, fmt.Errorf("transaction id %q: want UNIT.EPOCH.COUNTER.NONCE", string(t))
	}
	e, err := strconv.ParseInt(parts[1], 16, 64)
	if err != nil || e < 0 {
		return "", 0, 0, fmt.Errorf("transaction id %q: epoch %q is not hexadecimal", string(t), parts[1])
	}
	n, err := strconv.ParseUint(parts[2], 16, 64)
	if err != nil {
		return "", 0, 0, fmt.Errorf("transaction id %q: counter %q is not hexadecimal", string(t), parts[2])
	}
	if _, err := hex.DecodeString(parts[3]); err != nil {
		return "", 0, 0, fmt.Errorf("transaction id %q: nonce %q is not hexadecimal", string(t), parts[3])
	}
	// One attempt has one spelling: identifiers are compared as text.
	if want := fmt.Sprintf("%s.%x.%x.%s", parts[0], e, n, strings.ToLower(parts[3])); want != string(t) {
		return "", 0, 0, fmt.Errorf("transaction id %q: want the spelling %q", string(t), want)
	}
	return UnitUID(parts[0]), Epoch(e), n, nil
}

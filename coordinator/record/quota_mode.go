package record

import "fmt"

// QuotaMode says whether quota trees limit new work (QuotaModeKey). Without the key
// they do. A change replaces the record, so that the record names the last change and
// its author.
type QuotaMode struct {
	UID         string `json:"uid"`
	Maintenance bool   `json:"maintenance,omitempty"`
	Reason      string `json:"reason,omitempty"`
	By          string `json:"by,omitempty"`    // the caller's name
	Since       string `json:"since,omitempty"` // RFC 3339
}

func (m QuotaMode) check() error {
	if m.UID == "" || m.Since == "" {
		return fmt.Errorf("uid %q and since %q: want both", m.UID, m.Since)
	}
	return nil
}

// QuotaModeKey is the key of the mode of quota trees.
var QuotaModeKey = QuotaKey{Kind: QuotaModes, Name: "cluster"}.Key()

package record_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

func TestGoldenRecordsOfIdentity(t *testing.T) {
	roundTrip(t, "pki-authorities", record.Authorities{Cluster: "c", Roots: []record.AuthorityRoot{
		{ID: "00ff", Certificate: []byte{1, 2}, Key: []byte{3}, Created: "2026-01-02T03:04:05Z"},
		{ID: "01ff", Certificate: []byte{4}, Key: []byte{5}, Cross: [][]byte{{6}}, Created: "2027-01-02T03:04:05Z"},
	}})
	roundTrip(t, "pki-gossip-rotation", record.GossipKeys{
		Keys: [][]byte{[]byte("0123456789abcdef"), []byte("fedcba9876543210")},
		Rotation: &record.GossipRotation{
			Key: []byte("fedcba9876543210"), Old: [][]byte{[]byte("0123456789abcdef")}, Why: "node n3 was banned", From: "2026-01-02T03:04:05Z",
		},
	})
	roundTrip(t, "pki-ban", record.Ban{Banned: true, Reason: "hostile", By: "ann", At: "2026-01-02T03:04:05Z", Enrolled: true, Generation: 1767323045000})
	roundTrip(t, "pki-operator", record.Operator{
		Name: "ann", Creator: "admin", Certified: "2026-01-02T03:04:05Z", Expires: "2026-01-02T15:04:05Z", Revoked: "2026-01-02T04:04:05Z", RevokedBy: "boss",
	})
	roundTrip(t, "pki-node-ended", record.Enrolled{
		Issuer: "00ff", Expires: "2026-02-02T03:04:05Z", Enrolled: "2026-01-02T03:04:05Z", Ended: "2026-01-12T03:04:05Z", Generation: 1767323045000,
	})
	roundTrip(t, "pki-gossip", record.GossipKeys{Keys: [][]byte{[]byte("0123456789abcdef")}})
	roundTrip(t, "pki-token", record.BootstrapToken{
		ID: "0123456789", Hash: "ab", Nodes: "gpu-*", Uses: 3, Replace: true, Creator: "admin",
		Created: "2026-01-02T03:04:05Z", Expires: "2026-01-02T04:04:05Z",
	})
	roundTrip(t, "pki-token-labels", record.BootstrapToken{
		ID: "0123456789", Hash: "ab", Nodes: "gpu-*", Uses: 3, Labels: map[string]string{"zone": "a"},
		Created: "2026-01-02T03:04:05Z", Expires: "2026-01-02T04:04:05Z",
	})
	roundTrip(t, "pki-node-labels", record.Enrolled{
		Keys: []string{"cd"}, Issuer: "00ff", Expires: "2026-02-02T03:04:05Z", Token: "0123456789", Labels: map[string]string{"zone": "a"}, Enrolled: "2026-01-02T03:04:05Z",
	})
	roundTrip(t, "pki-node", record.Enrolled{
		Keys: []string{"cd", "ab"}, Issuer: "00ff", Expires: "2026-02-02T03:04:05Z", Token: "0123456789", Enrolled: "2026-01-02T03:04:05Z",
	})
}

func TestRecordsOfIdentityKeepTheirRules(t *testing.T) {
	refuses := func(what string, err error, want string) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", what, err, want)
		}
	}
	_, err := record.Encode(record.Authorities{Cluster: "c"})
	refuses("authorities without a root", err, "0 roots")
	_, err = record.Encode(record.Authorities{Cluster: "c", Roots: []record.AuthorityRoot{{ID: "a", Certificate: []byte{1}}}})
	refuses("a root without a key", err, `roots[0] "a"`)
	_, err = record.Encode(record.GossipKeys{Keys: [][]byte{make([]byte, 17)}})
	refuses("a key of 17 bytes", err, "17 bytes")
	_, err = record.Encode(record.BootstrapToken{ID: "a", Hash: "b", Nodes: "*", Uses: -1})
	refuses("negative uses", err, "uses -1")
	_, err = record.Encode(record.Enrolled{Keys: []string{"a", "b", "c"}})
	refuses("three keys", err, "3 of them")
	_, err = record.Encode(record.Enrolled{Keys: []string{"a"}, Ended: "2026-01-02T03:04:05Z"})
	refuses("a key of a certificate that has ended", err, "1 of a certificate that has ended")
	_, err = record.Encode(record.Ban{Banned: true, At: "2026-01-02T03:04:05Z"})
	refuses("a ban without a generation", err, "generation 0")
	_, err = record.Encode(record.Operator{Name: "ann"})
	refuses("an operator for ever", err, `until ""`)
	key := make([]byte, 16)
	_, err = record.Encode(record.GossipKeys{Keys: [][]byte{key}, Rotation: &record.GossipRotation{Key: key}})
	refuses("a rotation whose key is first and not used", err, "number 1 of 1, used false")
}

func TestKeysOfIdentity(t *testing.T) {
	for _, node := range []resource.NodeID{"gpu-01", "a/b", ""} {
		got, err := record.ParseEnrolledKey(record.EnrolledKey(node))
		if err != nil || got != node {
			t.Errorf("%q: got %q, %v", node, got, err)
		}
		if got, err := record.ParseBanKey(record.BanKey(node)); err != nil || got != node {
			t.Errorf("ban of %q: got %q, %v", node, got, err)
		}
	}
	if got, err := record.ParseOperatorKey(record.OperatorKey("00ff")); err != nil || got != "00ff" {
		t.Errorf("operator: got %q, %v", got, err)
	}
	if got := record.TokenKey("a/b"); got != "/registry/pki/tokens/a%2Fb" {
		t.Errorf("token key %q", got)
	}
}

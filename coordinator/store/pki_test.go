package store_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

func TestGoldenRecordsOfIdentity(t *testing.T) {
	roundTrip(t, "pki-authorities", store.Authorities{Cluster: "c", Roots: []store.AuthorityRoot{
		{ID: "00ff", Certificate: []byte{1, 2}, Key: []byte{3}, Created: "2026-01-02T03:04:05Z"},
		{ID: "01ff", Certificate: []byte{4}, Key: []byte{5}, Cross: [][]byte{{6}}, Created: "2027-01-02T03:04:05Z"},
	}})
	roundTrip(t, "pki-gossip-rotation", store.GossipKeys{
		Keys: [][]byte{[]byte("0123456789abcdef"), []byte("fedcba9876543210")},
		Rotation: &store.GossipRotation{
			Key: []byte("fedcba9876543210"), Old: [][]byte{[]byte("0123456789abcdef")}, Why: "node n3 was banned", From: "2026-01-02T03:04:05Z",
		},
	})
	roundTrip(t, "pki-ban", store.Ban{Banned: true, Reason: "hostile", By: "ann", At: "2026-01-02T03:04:05Z", Enrolled: true, Generation: 1767323045000})
	roundTrip(t, "pki-operator", store.Operator{
		Name: "ann", Creator: "admin", Certified: "2026-01-02T03:04:05Z", Expires: "2026-01-02T15:04:05Z", Revoked: "2026-01-02T04:04:05Z", RevokedBy: "boss",
	})
	roundTrip(t, "pki-node-ended", store.Enrolled{
		Issuer: "00ff", Expires: "2026-02-02T03:04:05Z", Enrolled: "2026-01-02T03:04:05Z", Ended: "2026-01-12T03:04:05Z", Generation: 1767323045000,
	})
	roundTrip(t, "pki-gossip", store.GossipKeys{Keys: [][]byte{[]byte("0123456789abcdef")}})
	roundTrip(t, "pki-token", store.BootstrapToken{
		ID: "0123456789", Hash: "ab", Nodes: "gpu-*", Uses: 3, Replace: true, Creator: "admin",
		Created: "2026-01-02T03:04:05Z", Expires: "2026-01-02T04:04:05Z",
	})
	roundTrip(t, "pki-token-labels", store.BootstrapToken{
		ID: "0123456789", Hash: "ab", Nodes: "gpu-*", Uses: 3, Labels: map[string]string{"zone": "a"},
		Created: "2026-01-02T03:04:05Z", Expires: "2026-01-02T04:04:05Z",
	})
	roundTrip(t, "pki-node-labels", store.Enrolled{
		Keys: []string{"cd"}, Issuer: "00ff", Expires: "2026-02-02T03:04:05Z", Token: "0123456789", Labels: map[string]string{"zone": "a"}, Enrolled: "2026-01-02T03:04:05Z",
	})
	roundTrip(t, "pki-node", store.Enrolled{
		Keys: []string{"cd", "ab"}, Issuer: "00ff", Expires: "2026-02-02T03:04:05Z", Token: "0123456789", Enrolled: "2026-01-02T03:04:05Z",
	})
}

func TestRecordsOfIdentityKeepTheirRules(t *testing.T) {
	refuses := func(what string, err error, want string) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", what, err, want)
		}
	}
	_, err := store.Encode(store.Authorities{Cluster: "c"})
	refuses("authorities without a root", err, "0 roots")
	_, err = store.Encode(store.Authorities{Cluster: "c", Roots: []store.AuthorityRoot{{ID: "a", Certificate: []byte{1}}}})
	refuses("a root without a key", err, `roots[0] "a"`)
	_, err = store.Encode(store.GossipKeys{Keys: [][]byte{make([]byte, 17)}})
	refuses("a key of 17 bytes", err, "17 bytes")
	_, err = store.Encode(store.BootstrapToken{ID: "a", Hash: "b", Nodes: "*", Uses: -1})
	refuses("negative uses", err, "uses -1")
	_, err = store.Encode(store.Enrolled{Keys: []string{"a", "b", "c"}})
	refuses("three keys", err, "3 of them")
	_, err = store.Encode(store.Enrolled{Keys: []string{"a"}, Ended: "2026-01-02T03:04:05Z"})
	refuses("a key of a certificate that has ended", err, "1 of a certificate that has ended")
	_, err = store.Encode(store.Ban{Banned: true, At: "2026-01-02T03:04:05Z"})
	refuses("a ban without a generation", err, "generation 0")
	_, err = store.Encode(store.Operator{Name: "ann"})
	refuses("an operator for ever", err, `until ""`)
	key := make([]byte, 16)
	_, err = store.Encode(store.GossipKeys{Keys: [][]byte{key}, Rotation: &store.GossipRotation{Key: key}})
	refuses("a rotation whose key is first and not used", err, "number 1 of 1, used false")
}

func TestKeysOfIdentity(t *testing.T) {
	for _, node := range []resource.NodeID{"gpu-01", "a/b", ""} {
		got, err := store.ParseEnrolledKey(store.EnrolledKey(node))
		if err != nil || got != node {
			t.Errorf("%q: got %q, %v", node, got, err)
		}
		if got, err := store.ParseBanKey(store.BanKey(node)); err != nil || got != node {
			t.Errorf("ban of %q: got %q, %v", node, got, err)
		}
	}
	if got, err := store.ParseOperatorKey(store.OperatorKey("00ff")); err != nil || got != "00ff" {
		t.Errorf("operator: got %q, %v", got, err)
	}
	if got := store.TokenKey("a/b"); got != "/registry/pki/tokens/a%2Fb" {
		t.Errorf("token key %q", got)
	}
}

package gossip_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/gossip"
)

func TestKeyringsReadBackInSerfsFormat(t *testing.T) {
	keys := [][]byte{bytes.Repeat([]byte{7}, 32), []byte("0123456789abcdef")}
	text := gossip.FormatKeyring(keys)
	got, err := gossip.ParseKeyring(text)
	if err != nil || !slices.EqualFunc(got, keys, bytes.Equal) {
		t.Fatalf("read back: %v, %v", got, err)
	}
	if !strings.Contains(string(text), `"MDEyMzQ1Njc4OWFiY2RlZg=="`) {
		t.Errorf("not serf's format: %s", text)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no list":           {`{}`, "cannot unmarshal"},
		"no key":            {`[]`, "0 keys"},
		"a key of 3 bytes":  {`["AAEC"]`, "3 bytes"},
		"a key in the raw":  {`["0123456789abcde"]`, "not base64"},
		"half a list":       {`["MDEy`, "unexpected end"},
		"seventeen keys":    {`["` + strings.Repeat(`MDEyMzQ1Njc4OWFiY2RlZg==","`, 16) + `MDEyMzQ1Njc4OWFiY2RlZg=="]`, "17 keys"},
		"numbers in a list": {`[1]`, "cannot unmarshal"},
	} {
		if _, err := gossip.ParseKeyring([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAKeyringBecomesWhatItIsReplacedBy(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) []byte { return bytes.Repeat([]byte{rapid.Byte().Draw(t, "b")}, 16) })
	keys := rapid.SliceOfNDistinct(key, 1, 6, func(k []byte) byte { return k[0] })
	rapid.Check(t, func(t *rapid.T) {
		before, after := keys.Draw(t, "before"), keys.Draw(t, "after")
		k, err := gossip.NewKeyring(before)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Replace(after); err != nil {
			t.Fatal(err)
		}
		got := k.Keys()
		if !bytes.Equal(got[0], after[0]) || len(got) != len(after) {
			t.Fatalf("got %x, want %x", got, after)
		}
		for _, want := range after {
			if !slices.ContainsFunc(got, func(g []byte) bool { return bytes.Equal(g, want) }) {
				t.Fatalf("got %x, want %x", got, after)
			}
		}
	})
}

func FuzzParseKeyring(f *testing.F) {
	f.Add(gossip.FormatKeyring([][]byte{[]byte("0123456789abcdef")}))
	f.Add([]byte(`["", "x"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := gossip.ParseKeyring(text)
		if err != nil {
			return
		}
		again, err := gossip.ParseKeyring(gossip.FormatKeyring(keys))
		if err != nil || !slices.EqualFunc(again, keys, bytes.Equal) {
			t.Errorf("%q reads as %x, and then as %x, %v", text, keys, again, err)
		}
	})
}

func TestWhoHasAnotherKeyIsRefusedAndSaysSo(t *testing.T) {
	t.Parallel()
	keyed := func(key []byte) func(int, *gossip.Config) {
		return func(_ int, cfg *gossip.Config) {
			k, err := gossip.NewKeyring([][]byte{key})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Keyring = k
		}
	}
	all := ring(t, 2, keyed([]byte("0123456789abcdef")))
	cfg := config("stranger", all[0].Serf.Addr())
	cfg.CapacityJoin = []string{all[0].Capacity.Addr()}
	keyed([]byte("fedcba9876543210"))(0, &cfg)
	stranger := start(t, cfg)
	for name, joinError := range map[string]func() error{"serf": stranger.Serf.JoinError, "capacity": stranger.Capacity.JoinError} {
		eventually(t, name+" says that the key is another", func() bool {
			err := joinError()
			return err != nil && strings.Contains(err.Error(), "gossip key")
		})
		t.Logf("%s: %v", name, joinError())
	}
	if alive(all[0]) != 2 {
		t.Errorf("%d members are in the ring, want 2", alive(all[0]))
	}
}

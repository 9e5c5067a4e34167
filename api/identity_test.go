package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
)

func TestWishesForTokensAndCertificatesAreRead(t *testing.T) {
	token, ttl, status := api.DecodeBootstrapToken([]byte(`{"kind":"BootstrapToken","metadata":{},"spec":{"nodes":"gpu-*","ttl":"90m","uses":3}}`))
	if status != nil || ttl != 90*time.Minute || token.Spec.Uses != 3 {
		t.Errorf("got %+v, %s, %v", token, ttl, status)
	}
	if _, ttl, status := api.DecodeBootstrapToken([]byte(`{"metadata":{},"spec":{"nodes":"*"}}`)); status != nil || ttl != 0 {
		t.Errorf("without a time: %s, %v", ttl, status)
	}
	for name, c := range map[string]struct{ doc, want string }{
		"a token for nobody":     {`{"metadata":{},"spec":{}}`, "spec.nodes: empty"},
		"a named token":          {`{"metadata":{"name":"x"},"spec":{"nodes":"*"}}`, "the server names tokens"},
		"a time without a unit":  {`{"metadata":{},"spec":{"nodes":"*","ttl":"5"}}`, `spec.ttl: "5"`},
		"a time in the past":     {`{"metadata":{},"spec":{"nodes":"*","ttl":"-1h"}}`, `spec.ttl: "-1h"`},
		"an unknown field":       {`{"metadata":{},"spec":{"node":"*"}}`, "node"},
		"no host":                {`{"metadata":{},"spec":{"nodes":"*","uses":0}}`, "spec.uses: 0 is outside 1..100000; leave it out for 1"},
		"less than no host":      {`{"metadata":{},"spec":{"nodes":"*","uses":-1}}`, "spec.uses: -1 is outside 1..100000"},
		"too many hosts":         {`{"metadata":{},"spec":{"nodes":"*","uses":100001}}`, "spec.uses: 100001 is outside 1..100000"},
		"another kind":           {`{"kind":"Job","metadata":{},"spec":{"nodes":"*"}}`, `kind: want "BootstrapToken"`},
		"uses that are no count": {`{"metadata":{},"spec":{"nodes":"*","uses":1.5}}`, "uses"},
	} {
		if _, _, status := api.DecodeBootstrapToken([]byte(c.doc)); status == nil || !strings.Contains(status.Message, c.want) {
			t.Errorf("%s: %v, want %q", name, status, c.want)
		}
	}
	if c, ttl, status := api.DecodeOperatorCertificate([]byte(`{"metadata":{"name":"ann"},"spec":{"request":"-----BEGIN","ttl":"90m"}}`)); status != nil || c.Spec.Request != "-----BEGIN" || ttl != 90*time.Minute {
		t.Errorf("got %+v, %v", c, status)
	}
	for want, doc := range map[string]string{
		"metadata.name":       `{"metadata":{"name":"Ann Lee"},"spec":{"request":"AAEC"}}`,
		"spec.request: empty": `{"metadata":{"name":"ann"},"spec":{}}`,
		`spec.ttl: "-1h"`:     `{"metadata":{"name":"ann"},"spec":{"request":"AAEC","ttl":"-1h"}}`,
	} {
		if _, _, status := api.DecodeOperatorCertificate([]byte(doc)); status == nil || !strings.Contains(status.Message, want) {
			t.Errorf("%s: %v", doc, status)
		}
	}
}

func TestDecodeNodeBan(t *testing.T) {
	for name, c := range map[string]struct{ doc, reason, want string }{
		"nothing":            {``, "", ""},
		"a reason":           {`{"kind":"NodeBan","spec":{"reason":"seen on a botnet"}}`, "seen on a botnet", ""},
		"the same name":      {`{"metadata":{"name":"gpu-1"}}`, "", ""},
		"another name":       {`{"metadata":{"name":"gpu-2"}}`, "", `metadata.name: "gpu-2": the ban is for the node "gpu-1" of the URL`},
		"another kind":       {`{"kind":"Node"}`, "", `kind: want "NodeBan"`},
		"a terminal escape":  {`{"spec":{"reason":"\u001b[2J"}}`, "", "not printed, U+001B"},
		"a reason too long":  {`{"spec":{"reason":"` + strings.Repeat("x", 513) + `"}}`, "", "513 bytes"},
		"a field too many":   {`{"spec":{"reasons":"x"}}`, "", "reasons"},
		"what is not a text": {`{"spec":{"reason":7}}`, "", "reason"},
	} {
		reason, status := api.DecodeNodeBan("gpu-1", []byte(c.doc))
		if reason != c.reason || (status == nil) != (c.want == "") || (status != nil && !strings.Contains(status.Message, c.want)) {
			t.Errorf("%s: %q, %v, want %q and %q", name, reason, status, c.reason, c.want)
		}
	}
}

func FuzzDecodeNodeBan(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"muster/v1","kind":"NodeBan","spec":{"reason":"why"}}`))
	f.Add([]byte(`{"spec":{"reason":"\u202e"}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if reason, status := api.DecodeNodeBan("", doc); status == nil && (len(reason) > 512 || strings.ContainsAny(reason, "\n\x1b")) {
			t.Errorf("read %q", reason)
		}
	})
}

func FuzzDecodeBootstrapToken(f *testing.F) {
	f.Add([]byte(`{"metadata":{},"spec":{"nodes":"gpu-*","ttl":"90m","uses":3,"replace":true}}`))
	f.Add([]byte(`{"spec":{"nodes":"","labels":{"zone":"a"}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		token, ttl, status := api.DecodeBootstrapToken(doc)
		if status == nil && (token.Spec.Nodes == "" || ttl < 0) {
			t.Errorf("read as %+v, %s", token, ttl)
		}
		_, _, _ = api.DecodeOperatorCertificate(doc)
	})
}

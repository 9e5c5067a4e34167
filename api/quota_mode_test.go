package api

import (
	"fmt"
	"strings"
	"testing"
)

func TestAModeIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		doc, want string // want: the mode, or the code and a part of the refusal
	}{
		"maintenance":                {`{"mode": "Maintenance", "reason": "moving groups"}`, "Maintenance"},
		"normal, with its kind":      {`{"apiVersion": "muster/v1", "kind": "QuotaMode", "metadata": {"resourceVersion": "7"}, "mode": "Normal"}`, "Normal"},
		"no mode":                    {`{}`, "422 mode: required: want Normal or Maintenance"},
		"a mode that does not exist": {`{"mode": "off"}`, `422 mode: "off": want Normal or Maintenance`},
		"small letters":              {`{"mode": "normal"}`, `422 mode: "normal"`},
		"another kind":               {`{"kind": "QuotaTree", "mode": "Normal"}`, `400 kind: want "QuotaMode"`},
		"an unknown field":           {`{"mode": "Normal", "modus": 1}`, "400 modus"},
		"two lines":                  {`{"mode": "Normal", "reason": "a\nb"}`, `422 reason: "a\nb"`},
		"a reason that is too long":  {`{"mode": "Normal", "reason": "` + strings.Repeat("a", 257) + `"}`, "422 reason: 257 bytes long, the limit is 256"},
	} {
		t.Run(name, func(t *testing.T) {
			p, status := DecodeQuotaModePatch([]byte(c.doc))
			got := p.Mode
			if status != nil {
				got = fmt.Sprint(status.Code, " ", status.Message)
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheNoticeNamesWhoAndWhy(t *testing.T) {
	m := QuotaMode{Mode: ModeMaintenance, Since: "2026-03-01T12:00:00Z", By: "ada", Reason: "moving groups"}
	const want = "quota trees are in the mode Maintenance since 2026-03-01T12:00:00Z, set by ada (moving groups): trees limit no new work; muster quota mode Normal ends this"
	if got := m.Notice(); got != want {
		t.Errorf("got %q", got)
	}
	if got := (QuotaMode{Mode: ModeNormal, Since: "x"}).Notice(); got != "" {
		t.Errorf("got %q", got)
	}
}

func FuzzQuotaModePatch(f *testing.F) {
	for _, seed := range []string{`{"mode":"Maintenance","reason":"a"}`, `{"mode":"Normal","metadata":{"resourceVersion":"1","uid":"u"}}`, `{}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, status := DecodeQuotaModePatch(doc)
		if status == nil && (p.Mode != ModeNormal && p.Mode != ModeMaintenance || len(p.Reason) > MaxLine) {
			t.Errorf("%s is read as %+v", doc, p)
		}
		if status != nil && status.Code != 400 && status.Code != 422 {
			t.Errorf("%s: %v", doc, status)
		}
	})
}

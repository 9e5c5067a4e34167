package enroll

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestAFullMemoryOfRefusals: the entries without a refusal left go first, entries with refusals
// only where all have some, and the bound is kept exactly.
func TestAFullMemoryOfRefusals(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(i int) string { return fmt.Sprint("10.", i>>16, ".", i>>8&255, ".", i&255) }
	f := newFailures(nil)
	for range addressBurst {
		f.add("bad", "bad-token", now)
	}
	for i := range failing - 2 {
		f.add(at(i), fmt.Sprint("token-", i), now)
	}
	later := now.Add(6500 * time.Millisecond) // each but "bad" has the full burst again
	f.add("late", "late-token", later.Add(-2*time.Second))
	if len(f.addresses) != failing || len(f.tokens) != failing {
		t.Fatalf("%d addresses and %d tokens are remembered, want %d", len(f.addresses), len(f.tokens), failing)
	}
	f.add("new", "new-token", later)
	for _, from := range []string{"bad", "late", "new"} {
		if f.addresses[from] == nil || f.tokens[from+"-token"] == nil || len(f.addresses) != 3 || len(f.tokens) != 3 {
			t.Errorf("%s: address remembered %t, token %t, beside %d addresses and %d tokens; want those with refusals alone",
				from, f.addresses[from] != nil, f.tokens[from+"-token"] != nil, len(f.addresses), len(f.tokens))
		}
	}
	for i := range 2 * failing {
		f.add(at(i), fmt.Sprint("token-", i), later)
		if want := min(failing, i+4); len(f.addresses) != want || len(f.tokens) != want {
			t.Fatalf("after %d more: %d addresses and %d tokens are remembered, want %d", i+1, len(f.addresses), len(f.tokens), want)
		}
	}
	f.add("", "token", later)
	if f.addresses[""] != nil {
		t.Error("a caller within the process is remembered")
	}
}

// TestLinesAboutAnAddress: the first refusal, and then each logEvery, with the number of refusals
// in between.
func TestLinesAboutAnAddress(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := newFailures(nil)
	f.add("a", "", now)
	for _, c := range []struct {
		after  time.Duration
		silent int
		yes    bool
	}{{0, 0, true}, {1, 0, false}, {logEvery - 1, 0, false}, {logEvery, 2, true}, {logEvery + 1, 0, false}, {2 * logEvery, 1, true}, {3 * logEvery, 0, true}} {
		if silent, yes := f.line("a", now.Add(c.after)); silent != c.silent || yes != c.yes {
			t.Errorf("after %s: a line %t with %d before, want %t with %d", c.after, yes, silent, c.yes, c.silent)
		}
	}
	for from, want := range map[string]bool{"": true, "never refused": false} {
		if silent, yes := f.line(from, now); silent != 0 || yes != want {
			t.Errorf("%q: a line %t with %d before, want %t", from, yes, silent, want)
		}
	}
}

// TestTheTimeUntilTheNextTry: to the token, rounded up.
func TestTheTimeUntilTheNextTry(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := rate.NewLimiter(0.5, 2)
	for i, want := range []time.Duration{0, 0, 2*time.Second + time.Millisecond} {
		if got := waitOf(l, now); got != want {
			t.Errorf("after %d refusals: %s, want %s", i, got, want)
		}
		l.AllowN(now, 1)
	}
	if got := waitOf(l, now.Add(2*time.Second)); got != 0 {
		t.Errorf("after the wait: %s", got)
	}
}

// TestWhichFailuresCount: failures of the store and of callers on their way are no guesses.
func TestWhichFailuresCount(t *testing.T) {
	want := map[codes.Code]string{
		codes.Unavailable: "", codes.Canceled: "", codes.DeadlineExceeded: "", codes.Aborted: "", codes.DataLoss: "", codes.Internal: "",
		codes.FailedPrecondition: "cluster", codes.InvalidArgument: "request", codes.Unauthenticated: "token", codes.AlreadyExists: "exists", codes.PermissionDenied: "denied",
	}
	for code, reason := range want {
		err := status.Error(code, "x")
		if isPassing(err) != (reason == "") || reason != "" && reasonOf(err) != reason {
			t.Errorf("%s: passing %t, reason %q; want %q", code, isPassing(err), reasonOf(err), reason)
		}
	}
	for err, want := range map[error]codes.Code{
		context.Canceled: codes.Canceled, context.DeadlineExceeded: codes.DeadlineExceeded, errors.New("x"): codes.Unavailable,
	} {
		if got := status.Code(unavailable(fmt.Errorf("read: %w", err), "enroll")); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

// address is an address of a peer.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// TestTheAddressOfACaller: of IPv6 the network of a host, of IPv4 the address in each form.
func TestTheAddressOfACaller(t *testing.T) {
	for from, want := range map[net.Addr]string{
		address("192.0.2.1:5"): "192.0.2.1", address("[::ffff:192.0.2.1]:5"): "192.0.2.1", address("[2001:db8:1:2:3::4]:5"): "2001:db8:1:2::/64",
		address("[2001:db8:1:2:ffff::1]:6"): "2001:db8:1:2::/64", address("[2001:db8:1:3::1]:6"): "2001:db8:1:3::/64", address("bufconn"): "bufconn", address("host:1"): "host", nil: "",
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: from})
		if got := addressOf(ctx); got != want {
			t.Errorf("%v is %q, want %q", from, got, want)
		}
	}
	if got := addressOf(t.Context()); got != "" {
		t.Errorf("a call of this process is from %q", got)
	}
}

// TestTimesAreOverAtTheirInstant: of tokens and of certificates; an unreadable time is over.
func TestTimesAreOverAtTheirInstant(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		text string
		at   time.Time
		want bool
	}{
		"a nanosecond before":    {stamp(end), end.Add(-1), false},
		"the instant":            {stamp(end), end, true},
		"after":                  {stamp(end), end.Add(1), true},
		"no time":                {"", end, true},
		"a time of another form": {"2126-03-01", end, true},
	} {
		if got := expired(record.BootstrapToken{Expires: c.text}, c.at); got != c.want {
			t.Errorf("a token, %s: expired %t", name, got)
		}
		if got := over(c.text, c.at); got != c.want {
			t.Errorf("a certificate, %s: over %t", name, got)
		}
	}
}

// TestRenewalsOfShortCertificates: a certificate of ten minutes is renewed each 30 s for good.
func TestRenewalsOfShortCertificates(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for life, every := range map[time.Duration]time.Duration{10 * time.Minute: 30 * time.Second, 20 * time.Minute: time.Minute, 24 * time.Hour: time.Minute} {
		var r renewals
		for i := range renewalBurst + 1 {
			if err := r.take("n", life, now); (err == nil) != (i < renewalBurst) {
				t.Errorf("%s: renewal %d: %v", life, i+1, err)
			}
		}
		if err := r.take("n", life, now.Add(every-time.Millisecond)); err == nil {
			t.Errorf("%s: a renewal before %s are over", life, every)
		}
		if err := r.take("n", life, now.Add(every)); err != nil {
			t.Errorf("%s: after %s: %v", life, every, err)
		}
	}
}

// TestTheKeysBesideTheNewest: the shown key counts until the new key has been used.
func TestTheKeysBesideTheNewest(t *testing.T) {
	for name, c := range map[string]struct {
		known         []string
		shown, newest string
		want          []string
	}{
		"another key":                     {[]string{"a"}, "a", "b", []string{"a"}},
		"another key after a lost answer": {[]string{"b", "a"}, "a", "c", []string{"a"}},
		"the same key again":              {[]string{"b", "a"}, "b", "b", []string{"a"}},
		"the same key, and no other":      {[]string{"a"}, "a", "a", nil},
	} {
		if diff := cmp.Diff(c.want, others(c.known, c.shown, c.newest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// keys are gossip keys by letter.
func keys(letters string) (list [][]byte) {
	for _, l := range letters {
		list = append(list, bytes.Repeat([]byte{byte(l)}, gossipKeyBytes))
	}
	return list
}

// letters is the opposite of keys.
func letters(list [][]byte) (text string) {
	for _, k := range list {
		text += string(rune(k[0]))
	}
	return text
}

// TestTheStepsOfARotation: with a second ban, with keys from operators, and with more old
// keys than a keyring takes.
func TestTheStepsOfARotation(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	shows := func(r record.GossipKeys) string {
		if r.Rotation == nil {
			return letters(r.Keys)
		}
		return fmt.Sprintf("%s to %s from %s used %t", letters(r.Keys), letters([][]byte{r.Rotation.Key}), letters(r.Rotation.Old), r.Rotation.Used)
	}
	at := func(all, key, old string, used bool) record.GossipKeys {
		return record.GossipKeys{Keys: keys(all), Rotation: &record.GossipRotation{Key: keys(key)[0], Old: keys(old), Used: used}}
	}
	begun := func(r record.GossipKeys) record.GossipKeys { return begin(r, keys("z")[0], "why", now) }
	for name, c := range map[string]struct {
		got  record.GossipKeys
		want string
	}{
		"a ban":                                        {begun(record.GossipKeys{Keys: keys("a")}), "az to z from a used false"},
		"a second ban before the key is used":          {begun(at("ab", "b", "a", false)), "az to z from a used false"},
		"a second ban after the key is used":           {begun(at("ba", "b", "a", true)), "baz to z from ba used false"},
		"as many old keys as are kept":                 {begun(record.GossipKeys{Keys: keys("abcdefgh")}), "abcdefghz to z from abcdefgh used false"},
		"an old key more":                              {begun(record.GossipKeys{Keys: keys("abcdefghi")}), "abcdefghz to z from abcdefgh used false"},
		"the second step":                              {next(at("ab", "b", "a", false)), "ba to b from a used true"},
		"the third step":                               {next(at("ba", "b", "a", true)), "b"},
		"the third step with an installed key":         {next(at("bac", "b", "a", true)), "bc"},
		"an operator adds a key":                       {withKeys(at("ab", "b", "a", false), keys("abc")), "abc to b from a used false"},
		"an operator removes the new key":              {withKeys(at("ab", "b", "a", false), keys("a")), "a"},
		"an operator sends with the new key too early": {withKeys(at("ab", "b", "a", false), keys("ba")), "ba"},
		"an operator sends with the old key again":     {withKeys(at("ba", "b", "a", true), keys("ab")), "ab"},
		"an operator adds a key after the second step": {withKeys(at("ba", "b", "a", true), keys("bac")), "bac to b from a used true"},
		"an operator changes keys without a rotation":  {withKeys(record.GossipKeys{Keys: keys("a")}, keys("ab")), "ab"},
	} {
		if got := shows(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestThePauseOfARotationBeginsOnce: at the first look at a step, and anew at the next step.
func TestThePauseOfARotationBeginsOnce(t *testing.T) {
	var r rotating
	step := &record.GossipRotation{}
	if got := r.wait(); got != time.Hour {
		t.Errorf("without a rotation: %s", got)
	}
	r.see(step, 5)
	due := r.due
	r.see(step, 5)
	if !r.due.Equal(due) {
		t.Error("a second look at a step begins the pause anew")
	}
	r.due = time.Time{}
	if got := r.wait(); got != 0 {
		t.Errorf("after the pause: %s", got)
	}
	if r.see(step, 6); r.wait() <= 0 || r.wait() > rotationPause {
		t.Errorf("the next step waits %s", r.wait())
	}
	if r.see(nil, 7); r.wait() != time.Hour {
		t.Errorf("after the rotation: %s", r.wait())
	}
}

// TestRevocationsAreToldAndPutBack: of certificates within their time alone.
func TestRevocationsAreToldAndPutBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const good, ended = "2026-03-01T00:00:01Z", "2026-03-01T00:00:00Z"
	k, stored := newKnown(), newKnown()
	k.operators = map[string]record.Operator{
		"a1": {Name: "ann", Expires: good, Revoked: "t"}, "a2": {Name: "ann", Expires: ended, Revoked: "t"}, "b1": {Name: "bob", Expires: good}, "b2": {Name: "bob", Expires: good},
		"c1": {Name: "cat", Expires: good, Revoked: "t"}, "d1": {Name: "dan", Expires: good, Revoked: "t"},
	}
	stored.operators = map[string]record.Operator{"a1": {Name: "ann", Expires: good}, "b1": {Name: "bob", Expires: good}, "c1": {Name: "cat", Expires: good, Revoked: "t"}}
	if diff := cmp.Diff([]string{"a1", "c1", "d1"}, k.revoked(now)); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
	var got []string
	for _, p := range k.missing(stored, now) {
		got = append(got, p.key)
	}
	if diff := cmp.Diff([]string{record.OperatorKey("a1"), record.OperatorKey("b2"), record.OperatorKey("d1")}, got); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
}

// TestARecordIsTakenOnce: the same record again is no change, and a decision is a change with a
// peer to look at.
func TestARecordIsTakenOnce(t *testing.T) {
	k := newKnown()
	one := record.Enrolled{Keys: []string{"a"}, Generation: 1}
	both := record.Enrolled{Keys: []string{"b", "a"}, Generation: 2}
	replaced := record.Enrolled{Keys: []string{"c"}, Generation: 3}
	ended := record.Enrolled{Ended: "t", Generation: 4}
	for i, c := range []struct {
		rec              record.Enrolled
		changes, decided bool
	}{{one, false, false}, {one, false, false}, {both, false, false}, {replaced, true, true}, {both, false, false}, {ended, true, true}, {ended, false, false}} {
		k.unsaved = false
		got := k.takeEnrolled("n", c.rec)
		if (got.peer.ID == "n") != c.changes || got.decided != c.decided {
			t.Errorf("record %d: %+v, want a change %t", i, got, c.changes)
		}
		if known, _, _ := k.node("n"); known.Generation < c.rec.Generation {
			t.Errorf("record %d is not known", i)
		}
	}
	ban := record.Ban{Banned: true, Generation: 1}
	for i, want := range []bool{true, false} {
		if got := k.takeBan(resource.NodeID("n"), ban); got.decided != want {
			t.Errorf("ban %d: %+v", i, got)
		}
	}
	for i, c := range []struct {
		o    record.Operator
		want bool
	}{{record.Operator{Name: "ann"}, false}, {record.Operator{Name: "ann", Revoked: "t"}, true}, {record.Operator{Name: "ann", Revoked: "t"}, false}, {record.Operator{Name: "ann"}, false}} {
		if got := k.takeOperator("h", c.o); got.decided != c.want {
			t.Errorf("operator %d: %+v", i, got)
		}
	}
	if o := k.operator("h"); o.Revoked == "" {
		t.Error("a revocation was forgotten")
	}
	k.drop(record.EnrolledKey("n"))
	k.drop(record.OperatorKey("h"))
	if _, has, b := k.node("n"); has || !b.Banned || k.operator("h").Name != "" || slices.Contains(k.revoked(time.Time{}), "h") {
		t.Error("a key that left the store is known, or its ban is not")
	}
}

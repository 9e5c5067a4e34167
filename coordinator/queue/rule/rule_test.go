package rule_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/queue/rule"
)

func unit(name string, priority int32, arrival uint64, members int, s rule.Standing) rule.Unit {
	return rule.Unit{Queue: "q", Key: queue.Key{Priority: priority, Epoch: 1, Counter: arrival, Path: name}, Members: members, Standing: s}
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules  rule.Rules
		units  []rule.Unit
		asked  int // of units
		needs  int
		holds  *rule.Block
		bounds *rule.Block
	}{
		"a queue without rules holds nobody back": {
			units: []rule.Unit{unit("a", 0, 1, 1, rule.Waits), unit("b", 0, 2, 1, rule.Waits)}, asked: 1, needs: 9,
		},
		"a queue on hold holds its head back": {
			rules: rule.Rules{Hold: true}, units: []rule.Unit{unit("a", 0, 1, 1, rule.Waits)}, holds: &rule.Block{Code: rule.Held, Queue: "q"},
		},
		"a strict queue lets its head start": {
			rules: rule.Rules{Strict: true}, units: []rule.Unit{unit("a", 0, 2, 1, rule.Waits), unit("b", 0, 1, 1, rule.Aside)},
		},
		"a strict queue holds back the units behind its head": {
			rules: rule.Rules{Strict: true}, units: []rule.Unit{unit("a", 0, 1, 1, rule.Waits), unit("b", 5, 2, 1, rule.Waits)},
			holds: &rule.Block{Code: rule.Behind, Queue: "q", Head: "b"},
		},
		"a unit whose start is not durable is the head": {
			rules: rule.Rules{Strict: true}, units: []rule.Unit{unit("a", 0, 2, 1, rule.Waits), unit("b", 0, 1, 1, rule.Starts)},
			holds: &rule.Block{Code: rule.Behind, Queue: "q", Head: "b"},
		},
		"a unit that runs holds nobody back": {
			rules: rule.Rules{Strict: true}, units: []rule.Unit{unit("a", 0, 2, 1, rule.Waits), unit("b", 0, 1, 1, rule.Runs)},
		},
		"the members of a group are the head together": {
			rules: rule.Rules{Strict: true}, units: []rule.Unit{unit("b", 0, 1, 1, rule.Waits), unit("a", 0, 1, 1, rule.Waits)},
		},
		"a hold comes before the order": {
			rules: rule.Rules{Strict: true, Hold: true}, units: []rule.Unit{unit("a", 0, 2, 1, rule.Waits), unit("b", 0, 1, 1, rule.Waits)},
			holds: &rule.Block{Code: rule.Held, Queue: "q"},
		},
		"members that start and members that run count for the bound": {
			rules: rule.Rules{MaxRunning: 4}, units: []rule.Unit{unit("a", 0, 1, 2, rule.Waits), unit("b", 0, 2, 1, rule.Runs), unit("c", 0, 3, 2, rule.Starts)}, needs: 2,
			bounds: &rule.Block{Code: rule.Full, Queue: "q", Running: 3, Max: 4, Needs: 2},
		},
		"fewer members than the bound leaves may start": {
			rules: rule.Rules{MaxRunning: 4}, units: []rule.Unit{unit("a", 0, 1, 2, rule.Waits), unit("b", 0, 2, 3, rule.Runs)}, needs: 1,
		},
		"more members than the bound never start": {
			rules: rule.Rules{MaxRunning: 4}, units: []rule.Unit{unit("a", 0, 1, 5, rule.Waits)}, needs: 5,
			bounds: &rule.Block{Code: rule.TooWide, Queue: "q", Max: 4, Needs: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b rule.Book
			for _, u := range c.units {
				b.Put(u)
			}
			b.SetRules("q", c.rules)
			u := c.units[c.asked]
			if diff := cmp.Diff(c.holds, b.Holds(u.Queue, u.Key)); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.bounds, b.Bounds(u.Queue, c.needs)); diff != "" {
				t.Errorf("bounds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	for name, c := range map[string]struct {
		rules             rule.Rules
		members, together int
		want              rule.Refusal
	}{
		"a queue without rules takes everything":          {rule.Rules{}, 1000, 1000, rule.Admitted},
		"a queue on hold takes work":                      {rule.Rules{Hold: true}, 1, 1, rule.Admitted},
		"a closed queue takes none":                       {rule.Rules{Closed: true}, 1, 1, rule.QueueClosed},
		"a gang above the bound of running members":       {rule.Rules{MaxRunning: 3}, 4, 4, rule.NeverRuns},
		"members that start one by one, above that bound": {rule.Rules{MaxRunning: 3}, 9, 1, rule.Admitted},
		"as many as may wait":                             {rule.Rules{MaxWaiting: 5}, 3, 1, rule.Admitted},
		"one more than may wait":                          {rule.Rules{MaxWaiting: 5}, 4, 1, rule.TooMany},
	} {
		t.Run(name, func(t *testing.T) {
			var b rule.Book
			b.SetRules("q", c.rules)
			b.Put(unit("a", 0, 1, 2, rule.Waits))
			b.Put(unit("b", 0, 2, 7, rule.Runs))
			if got := b.Enters("q", c.members, c.together); got != c.want {
				t.Errorf("%d members, %d of them together: %d, want %d", c.members, c.together, got, c.want)
			}
		})
	}
}

// The book gives the answers of a list that is searched anew each time, and its news name
// each unit whose answer has changed.
func TestAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b rule.Book
		rules, units := map[string]rule.Rules{}, map[string]rule.Unit{}
		queues := []string{"p", "q"}
		draw := func() rule.Rules {
			return rule.Rules{Hold: rapid.Bool().Draw(t, "hold"), Strict: rapid.Bool().Draw(t, "strict"), MaxRunning: rapid.IntRange(0, 4).Draw(t, "running"), MaxWaiting: rapid.IntRange(0, 4).Draw(t, "waiting")}
		}
		held := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom(queues).Draw(t, "queue")
			if rapid.IntRange(0, 4).Draw(t, "set") == 0 {
				rules[name] = draw()
				b.SetRules(name, rules[name])
			} else {
				u := unit(fmt.Sprint("u", rapid.IntRange(0, 5).Draw(t, "unit")), rapid.Int32Range(0, 1).Draw(t, "priority"), rapid.Uint64Range(1, 3).Draw(t, "arrival"),
					rapid.IntRange(1, 3).Draw(t, "members"), rule.Standing(rapid.IntRange(0, 4).Draw(t, "standing")))
				u.Queue = name
				b.Put(u)
				if units[u.Key.Path] = u; u.Standing == rule.Gone {
					delete(units, u.Key.Path)
				}
			}
			if rapid.Bool().Draw(t, "look") {
				check(t, &b, rules, units, held)
			}
		}
		check(t, &b, rules, units, held)
	})
}

// check compares the book with the list, and follows its news as a leader does: held are
// the waiting units that a rule holds back, as they were when last looked at.
func check(t *rapid.T, b *rule.Book, rules map[string]rule.Rules, units map[string]rule.Unit, held map[string]bool) {
	looked := map[string]bool{}
	for _, n := range b.TakeNews() {
		head, _ := b.Head(n.Queue)
		switch {
		case n.Changed:
			for _, path := range b.Waiting(n.Queue) {
				looked[path] = true
			}
		case head != n.Before:
			for _, path := range append(b.Abreast(n.Queue, n.Before), b.Abreast(n.Queue, head)...) {
				looked[path] = true
			}
		}
	}
	counts := map[string]rule.Count{}
	for _, u := range units {
		c := counts[u.Queue]
		if u.Standing == rule.Starts || u.Standing == rule.Runs {
			c.Running += u.Members
		} else {
			c.Waiting += u.Members
		}
		counts[u.Queue] = c
	}
	for _, name := range []string{"p", "q"} {
		if got := b.Count(name); got != counts[name] {
			t.Fatalf("queue %s has %+v, want %+v", name, got, counts[name])
		}
	}
	now := map[string]bool{}
	for path, u := range units {
		r := rules[u.Queue]
		behind := slices.ContainsFunc(values(units), func(o rule.Unit) bool {
			return o.Queue == u.Queue && (o.Standing == rule.Waits || o.Standing == rule.Starts) && o.Key.Compare(u.Key) < 0 && !o.Key.ArrivedWith(u.Key)
		})
		want := r.Hold || r.Strict && behind
		place := 0
		if u.Standing == rule.Aside || u.Standing == rule.Waits || u.Standing == rule.Starts {
			for _, o := range units {
				waits := o.Standing == rule.Aside || o.Standing == rule.Waits || o.Standing == rule.Starts
				if o.Queue == u.Queue && waits && o.Key.Compare(u.Key) < 0 && !o.Key.ArrivedWith(u.Key) {
					place++
				}
			}
			place++
		}
		if got := b.Position(u.Queue, u.Key); got != place {
			t.Fatalf("%s has place %d in queue %s, want %d", path, got, u.Queue, place)
		}
		if got := b.Holds(u.Queue, u.Key) != nil; got != want {
			t.Fatalf("%s in queue %s is held %t, want %t", path, u.Queue, got, want)
		}
		if u.Standing != rule.Waits {
			continue
		}
		now[path] = want
		if was, known := held[path+u.Queue+u.Key.Path+fmt.Sprint(u.Key)]; known && was != want && !looked[path] {
			t.Fatalf("%s is held %t, and was %t: no news name it", path, want, was)
		}
	}
	clear(held)
	for path, h := range now {
		u := units[path]
		held[path+u.Queue+u.Key.Path+fmt.Sprint(u.Key)] = h
	}
}

func values(units map[string]rule.Unit) []rule.Unit {
	var all []rule.Unit
	for _, u := range units {
		all = append(all, u)
	}
	return all
}

func Example() {
	var b rule.Book
	b.SetRules("train", rule.Rules{Strict: true})
	first := rule.Unit{Queue: "train", Key: queue.Key{Counter: 1, Path: "first"}, Members: 8, Standing: rule.Waits}
	second := rule.Unit{Queue: "train", Key: queue.Key{Counter: 2, Path: "second"}, Members: 1, Standing: rule.Waits}
	b.Put(first)
	b.Put(second)
	fmt.Println(b.Holds("train", second.Key).Head)
	first.Standing = rule.Runs
	b.Put(first)
	fmt.Println(b.Holds("train", second.Key))
	// Output:
	// first
	// <nil>
}

func BenchmarkPut(b *testing.B) {
	var book rule.Book
	book.SetRules("q", rule.Rules{Strict: true, MaxRunning: 100})
	for i := range uint64(10_000) {
		book.Put(unit(fmt.Sprint("u", i), 0, i, 1, rule.Waits))
	}
	for i := 0; b.Loop(); i++ {
		u := unit("x", 0, uint64(i%10_000), 1, rule.Waits)
		book.Put(u)
		book.Holds("q", u.Key)
		u.Standing = rule.Gone
		book.Put(u)
		book.TakeNews()
	}
}

// A queue has freed something only where fewer members hold something, or more may.
func TestNewsOfFreedMembers(t *testing.T) {
	put := func(members int, s rule.Standing) func(*rule.Book) {
		return func(b *rule.Book) { b.Put(unit("a", 0, 1, members, s)) }
	}
	set := func(r rule.Rules) func(*rule.Book) { return func(b *rule.Book) { b.SetRules("q", r) } }
	for name, c := range map[string]struct {
		before, change func(*rule.Book)
		want           bool
	}{
		"a unit begins to run":            {put(2, rule.Waits), put(2, rule.Starts), false},
		"its start is durable":            {put(2, rule.Starts), put(2, rule.Runs), false},
		"it ends":                         {put(2, rule.Runs), put(2, rule.Gone), true},
		"it goes back to the queue":       {put(2, rule.Starts), put(2, rule.Waits), true},
		"it has fewer members":            {put(2, rule.Runs), put(1, rule.Runs), true},
		"it changes its queue":            {put(2, rule.Runs), func(b *rule.Book) { u := unit("a", 0, 1, 2, rule.Runs); u.Queue = "p"; b.Put(u) }, true},
		"a unit that waits leaves":        {put(2, rule.Waits), put(2, rule.Gone), false},
		"the bound is greater":            {put(2, rule.Runs), set(rule.Rules{MaxRunning: 5}), true},
		"the bound is gone":               {put(2, rule.Runs), set(rule.Rules{Strict: true}), true},
		"the bound is smaller":            {put(2, rule.Runs), set(rule.Rules{MaxRunning: 3}), false},
		"another rule alone has changed":  {put(2, rule.Runs), set(rule.Rules{MaxRunning: 4, Strict: true}), false},
		"a queue without a bound gets it": {func(b *rule.Book) { b.SetRules("q", rule.Rules{Hold: true}) }, set(rule.Rules{MaxRunning: 9}), false},
	} {
		t.Run(name, func(t *testing.T) {
			var b rule.Book
			b.SetRules("q", rule.Rules{MaxRunning: 4})
			b.SetRules("p", rule.Rules{MaxRunning: 4})
			c.before(&b)
			b.TakeNews()
			c.change(&b)
			for _, n := range b.TakeNews() {
				if got := n.Freed && n.Queue == "q"; got != (c.want && n.Queue == "q") {
					t.Errorf("freed %t of queue %s, want %t", got, n.Queue, c.want)
				}
			}
		})
	}
}

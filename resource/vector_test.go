package resource_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

// held is x within the range of int64: the oracle of saturating arithmetic.
func held(x *big.Int) int64 {
	switch {
	case x.IsInt64():
		return x.Int64()
	case x.Sign() > 0:
		return math.MaxInt64
	}
	return math.MinInt64
}

// amounts are numbers near the borders of int64 as often as others.
func amounts() *rapid.Generator[int64] {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	return rapid.OneOf(rapid.SampledFrom(edges), rapid.Int64(), rapid.Int64Range(-4_000_000_000, 4_000_000_000))
}

func TestSaturatingArithmeticIsExactOrHeldAtTheBorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := amounts().Draw(t, "a"), amounts().Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		if got, want := resource.SaturatingAdd(a, b), held(new(big.Int).Add(x, y)); got != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := resource.SaturatingSub(a, b), held(new(big.Int).Sub(x, y)); got != want {
			t.Fatalf("%d - %d = %d, want %d", a, b, got, want)
		}
		if b < 0 {
			return
		}
		if got, want := resource.SaturatingMul(a, b), held(new(big.Int).Mul(x, y)); got != want {
			t.Fatalf("%d * %d = %d, want %d", a, b, got, want)
		}
	})
}

func TestSaturatingArithmeticAtTheBorders(t *testing.T) {
	for name, c := range map[string]struct{ got, want int64 }{
		"the greatest and one more":         {resource.SaturatingAdd(math.MaxInt64, 1), math.MaxInt64},
		"the least twice":                   {resource.SaturatingAdd(math.MinInt64, math.MinInt64), math.MinInt64},
		"the greatest and the least":        {resource.SaturatingAdd(math.MaxInt64, math.MinInt64), -1},
		"less the least":                    {resource.SaturatingSub(1, math.MinInt64), math.MaxInt64},
		"zero less the least":               {resource.SaturatingSub(0, math.MinInt64), math.MaxInt64},
		"the least less itself":             {resource.SaturatingSub(math.MinInt64, math.MinInt64), 0},
		"the least less one":                {resource.SaturatingSub(math.MinInt64, 1), math.MinInt64},
		"no limit for a thousand":           {resource.SaturatingMul(resource.Unlimited, 1000), resource.Unlimited},
		"no limit for nobody":               {resource.SaturatingMul(resource.Unlimited, 0), 0},
		"a great debt for a thousand":       {resource.SaturatingMul(math.MinInt64/2, 1000), math.MinInt64},
		"a debt of the least number, once":  {resource.SaturatingMul(math.MinInt64, 1), math.MinInt64},
		"the last product that still fits":  {resource.SaturatingMul(math.MaxInt64/1000, 1000), math.MaxInt64 / 1000 * 1000},
		"the first product that is too big": {resource.SaturatingMul(math.MaxInt64/1000+1, 1000), math.MaxInt64},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

func vectors() *rapid.Generator[resource.Vector] {
	names := rapid.SampledFrom([]resource.Name{resource.CPU, resource.Memory, resource.GPU, "pods"})
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		return resource.Vector(rapid.MapOfN(names, amounts(), 0, 4).Draw(t, "vector"))
	})
}

func TestVectorsAreAddedNameByName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := vectors().Draw(t, "v"), vectors().Draw(t, "w")
		k := rapid.Int64Range(0, 1<<40).Draw(t, "k")
		sum, rest, many := v.Clone(), v.Clone(), v.Scaled(k)
		before := w.Clone()
		sum.Add(w)
		rest.Sub(w)
		for _, n := range []resource.Name{resource.CPU, resource.Memory, resource.GPU, "pods", "absent"} {
			if sum[n] != resource.SaturatingAdd(v[n], w[n]) || rest[n] != resource.SaturatingSub(v[n], w[n]) ||
				many[n] != resource.SaturatingMul(v[n], k) {
				t.Fatalf("%s of %v and %v: sum %d, rest %d, times %d: %d", n, v, w, sum[n], rest[n], k, many[n])
			}
		}
		if diff := cmp.Diff(before, w); diff != "" {
			t.Fatalf("the operand changed (-before +after):\n%s", diff)
		}
		names := v.Names()
		for i, n := range names {
			if _, has := v[n]; !has || (i > 0 && names[i-1] >= n) {
				t.Fatalf("names of %v are %v", v, names)
			}
		}
		if len(names) != len(v) {
			t.Fatalf("names of %v are %v", v, names)
		}
	})
}

func TestAVectorMayBeAddedToItself(t *testing.T) {
	v := resource.Vector{resource.CPU: 3, resource.GPU: 1000}
	v.Add(v)
	if diff := cmp.Diff(resource.Vector{resource.CPU: 6, resource.GPU: 2000}, v); diff != "" {
		t.Errorf("twice itself (-want +got):\n%s", diff)
	}
	v.Sub(v)
	if diff := cmp.Diff(resource.Vector{resource.CPU: 0, resource.GPU: 0}, v); diff != "" {
		t.Errorf("less itself (-want +got):\n%s", diff)
	}
}

func TestTheNilVectorMayBeRead(t *testing.T) {
	var v resource.Vector
	v.Add(nil)
	v.Sub(resource.Vector{})
	if v.Clone() != nil || len(v.Names()) != 0 || len(v.Scaled(3)) != 0 || v[resource.CPU] != 0 {
		t.Error("the nil vector is not empty")
	}
}

func TestAClonedVectorIsIndependent(t *testing.T) {
	v := resource.Vector{resource.CPU: 1}
	c := v.Clone()
	c[resource.CPU], c[resource.GPU] = 2, 3
	if diff := cmp.Diff(resource.Vector{resource.CPU: 1}, v); diff != "" {
		t.Errorf("the original changed (-want +got):\n%s", diff)
	}
}

package resource

import "math"

// Millicores counts processor time: 1000 is one logical CPU.
type Millicores int64

// Bytes counts memory.
type Bytes int64

// Milli counts thousandths of a device: 1000 is one whole device.
type Milli int64

// WholeDevice is all of one device, and WholeCPU all of one logical CPU.
const (
	WholeDevice Milli      = 1000
	WholeCPU    Millicores = 1000
)

// Unlimited is the explicit "no limit" of a quota; arithmetic saturates at it.
const Unlimited int64 = math.MaxInt64

// SaturatingAdd returns a+b, held within the range of int64.
func SaturatingAdd(a, b int64) int64 {
	c := a + b
	switch {
	case a > 0 && b > 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && c >= 0:
		return math.MinInt64
	}
	return c
}

// SaturatingSub returns a-b, held within the range of int64.
func SaturatingSub(a, b int64) int64 {
	c := a - b
	switch {
	case a >= 0 && b < 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && c >= 0:
		return math.MinInt64
	}
	return c
}

// SaturatingMul returns a*b for b >= 0, held within the range of int64.
func SaturatingMul(a, b int64) int64 {
	switch {
	case a == 0 || b == 0:
		return 0
	case a > math.MaxInt64/b:
		return math.MaxInt64
	case a < math.MinInt64/b:
		return math.MinInt64
	}
	return a * b
}

package helper

func each(ns []int, do func(int)) {
	for _, n := range ns {
		do(n)
	}
}

// Sum and Most use each, and are in no circle with it.
func Sum(ns []int) (sum int) {
	each(ns, func(n int) { sum += n })
	return sum
}

// Most is in no circle.
func Most(ns []int) (most int) {
	each(ns, func(n int) { most = max(most, n) })
	return most
}

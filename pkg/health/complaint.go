// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

// maxDepth is how deep a status is looked through for a condition that explains it, and maxLooks at how many values.
const (
	maxDepth = 6
	maxLooks = 512
)

// complaint is what a status says about what is wrong: the message of the condition that lies deepest among those that
// are not as they should be, since what lies deeper is nearer to the cause; else a field that is called so. It is empty
// if there is none.
func complaint(status fields) string {
	if c := complaining(status); c != nil {
		return c.text("message")
	}
	for _, name := range [...]string{"message", "failureMessage", "errorMessage", "error", "reason", "lastError"} {
		if text := status.text(name); text != "" {
			return text
		}
	}
	return ""
}

// complaining is the deepest condition with a message that is not as it should be; nil if there is none.
func complaining(status fields) fields {
	s := search{}
	s.look(map[string]any(status), 0)
	return s.found
}

// search looks for a condition. It is bounded, as an object can be of any size.
type search struct {
	found fields
	rank  int
	looks int
}

func (s *search) look(value any, depth int) {
	if s.looks++; s.looks > maxLooks || depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			s.look(entry, depth+1)
		}
	case map[string]any:
		s.weigh(v, depth)
		// The names of the fields in which conditions and what has conditions lie. All others would be looked through in no
		// order.
		for _, name := range [...]string{"conditions", "parents", "ancestors", "listeners", "targets", "resources"} {
			if inner, ok := v[name]; ok {
				s.look(inner, depth+1)
			}
		}
	}
}

// weigh keeps a condition that explains more than the one before: one that lies deeper, and of those one that tells of
// a failure.
func (s *search) weigh(c fields, depth int) {
	if c.text("type") == "" || c.text("message") == "" {
		return
	}
	j := conditionOf(c, false, 0)
	if !j.known || severity(j.result.Health) == 0 {
		return
	}
	if rank := depth*10 + severity(j.result.Health); rank > s.rank {
		s.found, s.rank = c, rank
	}
}

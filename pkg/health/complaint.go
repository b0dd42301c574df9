// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

// maxDepth bounds how deep a status is searched for a condition that explains it, and maxValues how many values.
const (
	maxDepth  = 6
	maxValues = 512
)

// complaint returns the problem in a status: the message of the deepest abnormal condition, since deeper ones are
// nearer to the cause; otherwise the first field that describes a problem by its name, such as message or error. It is
// empty if there is none.
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

// complaining returns the deepest abnormal condition with a message; nil if there is none.
func complaining(status fields) fields {
	s := search{}
	s.look(map[string]any(status), 0)
	return s.found
}

// search looks for a condition. It is bounded, as objects can have any size.
type search struct {
	found   fields
	rank    int
	visited int
}

func (s *search) look(value any, depth int) {
	if s.visited++; s.visited > maxValues || depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			s.look(entry, depth+1)
		}
	case map[string]any:
		s.weigh(v, depth)
		// Only fields that hold conditions, or objects with conditions, are searched by name. All others would be searched in
		// no defined order.
		for _, name := range [...]string{"conditions", "parents", "ancestors", "listeners", "targets", "resources"} {
			if inner, ok := v[name]; ok {
				s.look(inner, depth+1)
			}
		}
	}
}

// weigh keeps the condition that explains more: the deeper one, and at equal depth one that reports a failure.
func (s *search) weigh(c fields, depth int) {
	if c.text("type") == "" || c.text("message") == "" {
		return
	}
	j := judgeCondition(c, false, 0)
	if !j.known || severity(j.result.Health) == 0 {
		return
	}
	if rank := depth*10 + severity(j.result.Health); rank > s.rank {
		s.found, s.rank = c, rank
	}
}

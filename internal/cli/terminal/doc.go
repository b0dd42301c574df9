// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal writes output for users.
//
// It shows text from objects of workload clusters' owners: conditions, messages, names. Terminals interpret control
// sequences, with which such a text could hide lines, change the window's title, or turn other text into a link.
//
// It guarantees that no text which passes through Clean, and so no cell of a Table and no string of a Document, moves
// the cursor, changes a colour, or reorders adjacent text. FuzzClean tests this. Colours are written only if ColoursFor
// allows it: to a terminal, unless disabled.
package terminal

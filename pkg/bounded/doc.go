// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounded limits how much memory an untrusted API server's responses can take, before anything is decoded.
//
// Decoding amplifies: 3 bytes of JSON, "{},", become 280 bytes as a PartialObjectMetadata, and 60 MB of them 6 GB. So a
// limit on bytes does not limit memory. A Scanner reads a JSON text as it arrives, and refuses it at the first byte
// that exceeds one of its Limits:
//
//   - Bytes: of the text.
//   - Cost: an upper bound of the memory for reading and decoding the text, regardless of what it is decoded into
//     (metadata, unstructured content, discovery documents). See cost.go.
//   - Values: the number of values of any kind.
//   - Depth: how deep objects and arrays are nested.
//   - Key and String: the length of one key and of one string.
//
// Text that a Scanner passes completely is valid for encoding/json. In a stream, such as a watch, the limits apply to
// each document. A Scanner allocates nothing and takes about 200 bytes.
//
// A Body puts a Scanner in front of an http.Response's body, and charges responses in progress to an Account, which
// refuses them if the process has no room (package budget).
//
// Every refusal is an *Error: it names what was limited and the limit, and contains nothing that the server sent.
package bounded

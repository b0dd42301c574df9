// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isPermanent reports whether a retry cannot help: the API server understood the request and refuses its content.
func isPermanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err)
}

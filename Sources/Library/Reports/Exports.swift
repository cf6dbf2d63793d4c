// Clients that import Reports also need the explanations of its terms.
@_exported public import Explanations

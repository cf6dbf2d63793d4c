/// Calls a function and converts the error that it throws.
///
/// - Parameter convert: Creates the error to throw from the function's error.
@discardableResult
package func converting<Value: ~Copyable, Lower: Error, Upper: Error>(
  _ convert: (Lower) -> Upper, _ body: () throws(Lower) -> Value
) throws(Upper) -> Value {
  do throws(Lower) { return try body() } catch { throw convert(error) }
}

/// Calls a function of a lower layer and converts its error, which keeps its text.
///
/// - Parameter subject: The name of the device or file that the call is about.
@discardableResult
package func translatingErrors<Value: ~Copyable, Lower: ExplainedError>(
  about subject: String? = nil, _ body: () throws(Lower) -> Value
) throws(KeyhaulError) -> Value {
  try converting({ KeyhaulError($0).with(subject: subject) }, body)
}

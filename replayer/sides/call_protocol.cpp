#include "replayer/sides/call_protocol.h"

#include "replayer/sides/message_codec.h"

namespace acltape::replayer::sides {
namespace {

using analyzer::lowering::LoweredTensor;
using analyzer::lowering::LoweredValue;
using storage::ValueKind;

constexpr uint32_t kProtocolVersion = 1;

using Encoder = MessageEncoder;
using Decoder = MessageDecoder;

// Writes the members of a value in the order of LoweredValue.
void Encode(const LoweredValue& value, Encoder& out) {
  out.Number(static_cast<uint8_t>(value.kind));
  out.Number<uint64_t>(value.tensors.size());
  for (const LoweredTensor& tensor : value.tensors) {
    out.Number(static_cast<uint8_t>(tensor.present));
    if (!tensor.present) continue;
    out.Number<int64_t>(tensor.memory.block());
    out.Tensor(tensor.layout);
  }
  out.Number(value.integer);
  out.Number(value.real);
  out.Text(value.text);
  out.Numbers(value.integers);
  out.Numbers(value.reals);
}

LoweredValue DecodeValue(Decoder& in) {
  LoweredValue value;
  const auto kind = in.Number<uint8_t>();
  if (kind > static_cast<uint8_t>(ValueKind::kScalarList)) in.Fail("has a value of no known kind");
  value.kind = static_cast<ValueKind>(kind);
  value.tensors.resize(in.Count(1));
  for (LoweredTensor& tensor : value.tensors) {
    tensor.present = in.Number<uint8_t>() != 0;
    if (!tensor.present) continue;
    tensor.memory =
        analyzer::lowering::OperandMemory::Block(static_cast<int>(in.Number<int64_t>()));
    tensor.layout = in.Tensor();
  }
  if (value.kind == ValueKind::kTensor && value.tensors.size() != 1) {
    in.Fail("has a tensor argument without its tensor");
  }
  value.integer = in.Number<int64_t>();
  value.real = in.Number<double>();
  value.text = in.Text();
  value.integers = in.Numbers<int64_t>();
  value.reals = in.Numbers<double>();
  return value;
}

void Encode(const PutBytes& put, Encoder& out) {
  out.Place(put.to);
  out.Raw(put.content->data() + put.first, static_cast<size_t>(put.bytes));
}
void Encode(const TakeBytes& take, Encoder& out) {
  out.Place(take.from);
  out.Number(take.bytes);
}
void Encode(const MoveBytes& move, Encoder& out) {
  out.Place(move.to);
  out.Place(move.from);
  out.Number(move.bytes);
}
void Encode(const CallOperator& call, Encoder& out) {
  out.Number(call.call_id);
  out.Text(call.invocation.op);
  out.Number<uint64_t>(call.invocation.arguments.size());
  for (const LoweredValue& value : call.invocation.arguments) Encode(value, out);
}
void Encode(const TakeDigest& take, Encoder& out) {
  out.Place(take.element_zero);
  out.Tensor(take.layout);
}

SideCommand DecodePut(Decoder& in) {
  PutBytes put;
  put.to = in.Place();
  const std::string_view bytes = in.Raw();
  put.content = std::make_shared<const std::vector<uint8_t>>(bytes.begin(), bytes.end());
  put.bytes = static_cast<int64_t>(bytes.size());
  return put;
}
SideCommand DecodeTake(Decoder& in) {
  TakeBytes take;
  take.from = in.Place();
  take.bytes = in.Number<int64_t>();
  return take;
}
SideCommand DecodeMove(Decoder& in) {
  MoveBytes move;
  move.to = in.Place();
  move.from = in.Place();
  move.bytes = in.Number<int64_t>();
  return move;
}
SideCommand DecodeCall(Decoder& in) {
  CallOperator call;
  call.call_id = in.Number<int64_t>();
  call.invocation.op = in.Text();
  const size_t count = in.Count(1);
  for (size_t i = 0; i < count; ++i) call.invocation.arguments.push_back(DecodeValue(in));
  return call;
}
SideCommand DecodeDigest(Decoder& in) {
  TakeDigest take;
  take.element_zero = in.Place();
  take.layout = in.Tensor();
  return take;
}

// The decoders, in the order of SideCommand.
using DecodeCommand = SideCommand (*)(Decoder&);
constexpr DecodeCommand kCommands[] = {DecodePut, DecodeTake, DecodeMove, DecodeCall, DecodeDigest};
static_assert(std::size(kCommands) == std::variant_size_v<SideCommand>);

}  // namespace

std::string EncodeOpen(const std::string& library) {
  Encoder out;
  out.Number(kProtocolVersion);
  out.Text(library);
  return out.Take();
}

std::string DecodeOpen(std::string_view body) {
  Decoder in(body);
  const auto version = in.Number<uint32_t>();
  if (version != kProtocolVersion) {
    in.Fail("is of version " + std::to_string(version) + ", this program speaks version " +
            std::to_string(kProtocolVersion));
  }
  std::string library = in.Text();
  in.End();
  return library;
}

std::string EncodeText(const std::string& text) {
  Encoder out;
  out.Text(text);
  return out.Take();
}

std::string DecodeText(std::string_view body) {
  Decoder in(body);
  std::string text = in.Text();
  in.End();
  return text;
}

std::string EncodePrepare(const std::vector<int64_t>& block_bytes) {
  Encoder out;
  out.Numbers(block_bytes);
  return out.Take();
}

std::vector<int64_t> DecodePrepare(std::string_view body) {
  Decoder in(body);
  std::vector<int64_t> block_bytes = in.Numbers<int64_t>();
  for (const int64_t bytes : block_bytes) {
    if (bytes < 0) in.Fail("asks for a block of " + std::to_string(bytes) + " bytes");
  }
  in.End();
  return block_bytes;
}

std::string EncodePerform(const std::vector<SideCommand>& commands) {
  Encoder out;
  out.Number<uint64_t>(commands.size());
  for (const SideCommand& command : commands) {
    out.Number(static_cast<uint8_t>(command.index()));
    std::visit([&](const auto& own) { Encode(own, out); }, command);
  }
  return out.Take();
}

std::vector<SideCommand> DecodePerform(std::string_view body) {
  Decoder in(body);
  const size_t count = in.Count(1);
  std::vector<SideCommand> commands;
  for (size_t i = 0; i < count; ++i) {
    const auto index = in.Number<uint8_t>();
    if (index >= std::size(kCommands)) in.Fail("has a command of no known kind");
    commands.push_back(kCommands[index](in));
  }
  in.End();
  return commands;
}

std::string EncodeResults(const std::vector<SideResult>& results) {
  Encoder out;
  out.Number<uint64_t>(results.size());
  for (const SideResult& result : results) {
    out.Text(result.digest);
    out.Raw(result.bytes.data(), result.bytes.size());
  }
  return out.Take();
}

std::vector<SideResult> DecodeResults(std::string_view body) {
  Decoder in(body);
  std::vector<SideResult> results(in.Count(2 * sizeof(uint64_t)));
  for (SideResult& result : results) {
    result.digest = in.Text();
    const std::string_view bytes = in.Raw();
    result.bytes.assign(bytes.begin(), bytes.end());
  }
  in.End();
  return results;
}

}  // namespace acltape::replayer::sides

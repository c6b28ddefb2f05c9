// The vendor's spelling of the header of aclnnNsaSelectedAttentionInfer.
#include "aclnnop/aclnn_nsa_selected_attention_infer.h"

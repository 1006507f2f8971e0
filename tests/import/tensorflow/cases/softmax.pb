
;
x0Placeholder*
dtype0*
shape:

SoftmaxSoftmaxx0*
T0
%

LogSoftmax
LogSoftmaxx0*
T0
*
addAddV2Softmax
LogSoftmax*
T0
"
IdentityIdentityadd*
T0
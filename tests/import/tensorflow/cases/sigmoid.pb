
;
x0Placeholder*
dtype0*
shape:

SigmoidSigmoidx0*
T0
&
IdentityIdentitySigmoid*
T0
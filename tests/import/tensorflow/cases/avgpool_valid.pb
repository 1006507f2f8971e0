
;
x0Placeholder*
dtype0*
shape:	
t
	AvgPool2DAvgPoolx0*
paddingVALID*
data_formatNHWC*
ksize
*
T0*
strides

(
IdentityIdentity	AvgPool2D*
T0